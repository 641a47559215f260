// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// All state of a loop: plain values, which change under the loop's one lock. Nothing here calls out, waits or makes a
/// system call.
struct RunLoopState: Sendable {
    // First what a thread that rings a source reads and changes: see LineTests.
    /// The runs that are in progress, innermost last.
    var runs: [ActiveRun] = []
    /// How many modes were examined so far on behalf of items: tests measure costs by it.
    var modeSteps = 0
    /// Every mode that something was added to, or that was run. Modes are never removed, so an index names a mode
    /// permanently.
    var modes = [ModeState(name: .default)]
    /// The port-based sources.
    var registrations = RegistrationTable()

    private var indices: [RunLoopMode: Int] = [.default: 0]
    /// The mode that was looked up last: to find it again costs a comparison, where a lookup computes a hash.
    private var lastFound = (mode: RunLoopMode.default, index: 0)
    /// The other modes that a block was posted for.
    private var namesOfBlocks: Set<RunLoopMode> = []
    /// All items but port-based sources, with the modes that they are in.
    var modeItems: [ItemID: (item: RunLoopItem, memberModes: ModeList)] = [:]
    var commonModes: Set<RunLoopMode> = [.default]
    /// The items of the common modes, with the modes to which they were added individually as well.
    var commonItems: [ItemID: (item: RunLoopItem, serial: Int, ownModes: Set<Int>)] = [:]
    var lastSerial = 0

    var waitStrategy = WaitStrategy.standard
    var mainQueue: MainQueueState?
    /// A timer tries again to serve it.
    var isMainQueueLate = false
    /// For sources whose descriptors the kernel does not watch: the timers that try again.
    var watchRetryTimers: [ItemID: RunLoopTimer] = [:]
    var blocks = BlockQueue()
    /// A job is in progress: runs nested inside it leave the other jobs waiting.
    var isRunningJob = false
    /// The requests of the perform family that wait for their call.
    var requests = PerformRequests()
    /// The observers whose handlers are being called.
    var firingObservers: Set<ItemID> = []
    /// A stop for the next run, which was requested while no run could accept it.
    var stopIsPending = false
    private(set) var hasEnded = false

    var modeNames: Set<RunLoopMode> { namesOfBlocks.union(indices.keys) }

    /// The index of a mode that something was added to.
    mutating func index(of mode: RunLoopMode) -> Int? {
        if lastFound.mode == mode { return lastFound.index }
        guard let index = indices[mode] else { return nil }
        lastFound = (mode, index)
        return index
    }

    /// The index of a mode that is known, if only from a block.
    mutating func knownIndex(of mode: RunLoopMode) -> Int? {
        index(of: mode) ?? (namesOfBlocks.contains(mode) ? makeIndex(of: mode) : nil)
    }

    /// Records a mode that a block was posted for: this stores only its name.
    mutating func noteBlock(in mode: RunLoopMode) {
        if mode != .common, indices[mode] == nil { namesOfBlocks.insert(mode) }
    }

    /// The index of a mode, which is made when it is new.
    mutating func makeIndex(of mode: RunLoopMode) -> Int {
        if let index = index(of: mode) { return index }
        namesOfBlocks.remove(mode)
        indices[mode] = modes.count
        modes.append(ModeState(name: mode))
        return modes.count - 1
    }

    /// Whether the innermost run is in the mode.
    func isRunning(in mode: Int) -> Bool {
        runs.last?.mode == mode
    }

    /// Whether a block, or a job that may be run now, waits for the mode.
    func hasBlock(for mode: Int) -> Bool {
        !blocks.isEmpty
            && blocks.hasBlock(
                for: modes[mode].name, isCommon: commonModes.contains(modes[mode].name), admitsJobs: !isRunningJob)
    }

    /// Dequeues the first of the blocks for the mode and the jobs that may be run now, up to the number `limit`.
    mutating func dequeueBlock(for mode: Int, upTo limit: UInt64) -> BlockQueue.Item? {
        if blocks.isEmpty { return nil }
        let name = modes[mode].name
        return blocks.dequeueFirst(
            for: name, isCommon: commonModes.contains(name), admitsJobs: !isRunningJob, upTo: limit)
    }

    /// Whether a sleeping loop must be woken for a block that was just posted.
    func mustWake(forBlockIn names: [RunLoopMode]) -> Bool {
        guard let run = runs.last else { return false }
        let name = modes[run.mode].name
        return names.contains(name) || names.contains(.common) && commonModes.contains(name)
    }

    /// Whether a sleeping loop must be woken for a job that was just posted.
    var mustWakeForJob: Bool { !isRunningJob && mustWake(forBlockIn: [.common]) }

    /// Whether nothing in the mode keeps a run going: observers do not, sources, timers and waiting blocks do.
    @inline(__always)
    func isEmpty(_ mode: Int) -> Bool {
        var count = modes[mode].lastingCount
        // The main queue does not keep a run going that was started inside it and cannot serve it.
        if let mainQueue, mainQueue.service != .idle, registrations.registration(of: mainQueue.source, in: mode) != nil
        {
            count -= 1
        }
        return count == 0 && !hasBlock(for: mode)
    }

    /// Empties the loop, because its thread ends.
    ///
    /// - Returns: everything that was in it, for the caller to release without the lock.
    mutating func end() -> RunLoopState {
        let all = self
        self = RunLoopState()
        // Indices that other threads hold stay valid.
        modes = all.modes.map { ModeState(name: $0.name) }
        indices = all.indices
        namesOfBlocks = all.namesOfBlocks
        hasEnded = true
        return all
    }
}

// MARK: - Items

// Which items are in which modes of a loop.
extension RunLoopState {
    /// Adds an item to a mode, or to all common modes.
    ///
    /// - Returns: the modes in which it is new.
    mutating func add(_ item: RunLoopItem, to mode: RunLoopMode) -> [Int] {
        if hasEnded { return [] }
        guard mode == .common else {
            let index = makeIndex(of: mode)
            commonItems[item.id]?.ownModes.insert(index)
            return enter(item, index) ? [index] : []
        }
        if commonItems[item.id] == nil {
            lastSerial += 1
            commonItems[item.id] = (item, lastSerial, Set(modes(of: item.id)))
        }
        return commonModes.sorted { $0.rawValue < $1.rawValue }.map { makeIndex(of: $0) }.filter { enter(item, $0) }
    }

    /// Whether a port-based source is in the mode, and was not added to the common modes: then there is nothing to do to
    /// add it. The cached index is that of its registration there, if it is still valid; otherwise this is false.
    mutating func hasAlready(
        _ source: RunLoopSource, near cachedIndex: RegistrationIndex, in mode: RunLoopMode
    ) -> Bool {
        guard cachedIndex < registrations.list.count, registrations.list[cachedIndex].source === source,
            mode != .common, commonItems[source.id] == nil
        else { return false }
        return index(of: mode) == Int(registrations.list[cachedIndex].mode)
    }

    /// - Returns: whether the item is new in the mode.
    private mutating func enter(_ item: RunLoopItem, _ index: Int) -> Bool {
        if case .source(let source) = item, source.isPortBased { return register(source, index) }
        if let modeItem = modeItems[item.id] {
            if modeItem.memberModes.contains(index) { return false }
            modeItems[item.id]?.memberModes.append(index)
        } else {
            modeItems[item.id] = (item, ModeList(index))
        }
        modes[index].insert(item)
        return true
    }

    /// Puts a port-based source into a mode.
    private mutating func register(_ source: RunLoopSource, _ index: Int) -> Bool {
        if registrations.registration(of: source.id, in: index) != nil { return false }
        let number = registrations.allocate(for: source, in: index)
        modes[index].count(.source(source), 1)
        modes[index].ready.insert(number, order: source.order, &registrations)
        return true
    }

    private func modes(of id: ItemID) -> [Int] {
        modeItems[id]?.memberModes.all ?? registrations.modes(of: id)
    }

    mutating func memberModes(of id: ItemID) -> [Int] {
        let found = modes(of: id)
        modeSteps += found.count
        return found
    }

    /// Removes an item from a mode, or from the common modes: then it stays in those to which it was added
    /// individually.
    ///
    /// - Returns: the modes that it has left, with the registrations of its descriptor.
    mutating func remove(_ id: ItemID, from mode: RunLoopMode) -> [Removal] {
        guard mode == .common else {
            guard let index = index(of: mode) else { return [] }
            commonItems[id]?.ownModes.remove(index)
            return leave(id, [index])
        }
        guard let common = commonItems.removeValue(forKey: id) else { return [] }
        return leave(id, memberModes(of: id).sorted().filter { !common.ownModes.contains($0) })
    }

    mutating func removeEverywhere(_ id: ItemID) -> [Removal] {
        commonItems[id] = nil
        return leave(id, memberModes(of: id).sorted())
    }

    /// A mode that an item has left.
    struct Removal: Sendable {
        var mode: Int
        var name: RunLoopMode
        var registration: DescriptorRegistration?
    }

    private mutating func leave(_ id: ItemID, _ indices: [Int]) -> [Removal] {
        guard let modeItem = modeItems[id] else { return indices.compactMap { unregister(id, $0) } }
        let leaving = indices.filter { modeItem.memberModes.contains($0) }
        let staying = ModeList(modeItem.memberModes.all.filter { !leaving.contains($0) })
        modeItems[id] = staying.map { (modeItem.item, $0) }
        for index in leaving { modes[index].remove(modeItem.item) }
        return leaving.map { Removal(mode: $0, name: modes[$0].name) }
    }

    /// Removes a port-based source from a mode.
    private mutating func unregister(_ id: ItemID, _ index: Int) -> Removal? {
        guard let number = registrations.registration(of: id, in: index), let source = registrations.list[number].source
        else { return nil }
        let departure = Removal(mode: index, name: modes[index].name, registration: descriptorRegistration(of: number))
        modes[index].count(.source(source), -1)
        modes[index].ready.remove(number, &registrations)
        modes[index].forgetReport(of: number)
        registrations.deallocate(number)
        return departure
    }

    /// The registration of a port-based source's descriptor in the mode of a registration.
    func descriptorRegistration(of number: RegistrationIndex) -> DescriptorRegistration? {
        guard let descriptor = registrations.descriptor(of: number),
            let set = modes[Int(registrations.list[number].mode)].descriptors
        else { return nil }
        return DescriptorRegistration(set: set, key: descriptor.key, descriptor: descriptor.raw)
    }

    func isMember(_ id: ItemID, of mode: Int) -> Bool {
        modeItems[id]?.memberModes.contains(mode) ?? (registrations.registration(of: id, in: mode) != nil)
    }

    /// The custom source with this number, if it is in the mode.
    func customSource(_ id: ItemID, in mode: Int) -> RunLoopSource? {
        guard let modeItem = modeItems[id], modeItem.memberModes.contains(mode),
            case .source(let source) = modeItem.item
        else { return nil }
        return source
    }

    /// The timer with this number, if it is in the mode.
    func timer(_ id: ItemID, in mode: Int) -> RunLoopTimer? {
        guard case .timer(let timer) = modeItems[id]?.item, isMember(id, of: mode) else { return nil }
        return timer
    }

    mutating func contains(_ id: ItemID, in mode: RunLoopMode) -> Bool {
        if mode == .common { return commonItems[id] != nil }
        return index(of: mode).map { isMember(id, of: $0) } ?? false
    }

    /// Whether the item is in any mode of this loop.
    func contains(_ id: ItemID) -> Bool {
        commonItems[id] != nil || modeItems[id] != nil || registrations.registration(of: id) != nil
    }

    /// Makes a mode common.
    ///
    /// - Returns: the items that are new in it, in the order in which they were added to the common modes.
    mutating func addCommonMode(_ mode: RunLoopMode) -> [(item: RunLoopItem, mode: Int)] {
        guard !hasEnded, mode != .common, commonModes.insert(mode).inserted, !commonItems.isEmpty else { return [] }
        let index = makeIndex(of: mode)
        return commonItems.values.sorted { $0.serial < $1.serial }.map(\.item)
            .filter { enter($0, index) }.map { ($0, index) }
    }

    /// Every item that is in this loop, some more than once.
    var everyItem: [RunLoopItem] {
        modeItems.values.map(\.item) + registrations.all.map { .source($0.source) } + commonItems.values.map(\.item)
    }

    /// Every source, with each mode that it is in: by mode, the oldest first.
    var sourcesByMode: [(source: RunLoopSource, mode: Int)] {
        let custom = modeItems.values.flatMap { modeItem -> [(source: RunLoopSource, mode: Int)] in
            guard case .source(let source) = modeItem.item else { return [] }
            return modeItem.memberModes.all.map { (source, $0) }
        }
        return (custom + registrations.all).sorted { ($0.mode, $0.source.id) < ($1.mode, $1.source.id) }
    }

    mutating func beginObserver(_ id: ItemID, in mode: Int) -> Bool {
        isMember(id, of: mode) && firingObservers.insert(id).inserted
    }

    mutating func dequeueFirstSignalled(in mode: Int) -> RunLoopSource? {
        guard let first = modes[mode].signalled.first, consumeSignal(first.id, in: mode) else { return nil }
        return customSource(first.id, in: mode)
    }

    /// Removes a custom source from the mode's list of signalled sources, and from those of its other modes.
    ///
    /// - Returns: false when it is no longer on the mode's list.
    mutating func consumeSignal(_ id: ItemID, in mode: Int) -> Bool {
        guard modes[mode].signalled.remove(id) != nil else { return false }
        for index in memberModes(of: id) { modes[index].signalled.remove(id) }
        return true
    }

    /// The custom sources that are signalled, in the order in which they are to be performed.
    mutating func signalledSources(in mode: Int) -> [RunLoopSource] {
        if modes[mode].signalled.isEmpty { return [] }
        let last = ModeState.SignalKey(order: .max, stamp: .max)
        return modes[mode].signalled.entries(notAfter: last).sorted { $0.key < $1.key }
            .compactMap { customSource($0.id, in: mode) }
    }
}

// MARK: - PortSources

// The operations on a loop's state that a message costs. A cached index may be stale: its registration may be another
// source's by now.
extension RunLoopState {
    /// Lists a port-based source as possibly ready in each mode that it is in.
    ///
    /// - Returns: whether a sleeping loop must be woken for it.
    mutating func noteReadiness(of source: RunLoopSource, near cachedIndex: RegistrationIndex) -> Bool {
        guard let first = registrations.registration(of: source, near: cachedIndex) else { return false }
        let order = source.order
        var mustWake = false
        var number = first
        repeat {
            let mode = Int(registrations.list[number].mode)
            modeSteps += 1
            modes[mode].ready.insert(number, order: order, &registrations)
            if isRunning(in: mode) { mustWake = true }
            number = Int(registrations.list[number].next)
        } while number != first
        return mustWake
    }

    /// Records that the kernel has reported a source's descriptor.
    mutating func noteReport(of source: RunLoopSource, in mode: Int, pass: Int) {
        guard let number = registrations.registration(of: source.id, in: mode) else { return }
        modes[mode].ready.insert(number, order: source.order, report: pass, &registrations)
    }

    /// Removes a port-based source from the ready list to perform it.
    ///
    /// - Returns: false when it is no longer there.
    mutating func dequeueForPerform(_ source: RunLoopSource, in mode: Int, near cachedIndex: RegistrationIndex) -> Bool
    {
        guard let number = registrations.registration(of: source, in: mode, near: cachedIndex) else { return false }
        return modes[mode].ready.dequeueForPerform(number, &registrations)
    }

    /// Whether a pass in the mode would find nothing in its first steps: no observer, no block, no signalled source.
    func isIdle(_ mode: Int) -> Bool {
        blocks.isEmpty && modes[mode].signalled.isEmpty && modes[mode].observers.isEmpty
    }

    /// Whether a pass can end without another check: no block waits, and the run is either conditional, or was not
    /// stopped and has something to wait for.
    func isPlain(_ run: LoopRun) -> Bool {
        blocks.isEmpty && (run.isConditional || !isStopped && !isEmpty(run.mode))
    }

    /// Whether a port-based source that is being performed, and has more, is all that the next pass would find. If it
    /// is on the ready list, it is removed. The clock is read only when nothing else answers that.
    mutating func mayContinue(
        with source: RunLoopSource, in mode: Int, near cachedIndex: RegistrationIndex,
        at now: @autoclosure () -> MonotonicInstant
    ) -> Bool {
        if isStopped || !isIdle(mode) || modes[mode].timers.isDue(at: now()) { return false }
        guard let number = registrations.registration(of: source, in: mode, near: cachedIndex) else { return false }
        guard let first = modes[mode].ready.first else { return true }
        return first == number && modes[mode].ready.dequeueForPerform(number, &registrations)
    }
}
