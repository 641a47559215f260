// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// All state of a loop: pure values that decide, under the loop's one lock. Nothing here calls out, waits or makes a
// system call.

/// What a loop knows.
struct RunLoopState: Sendable {
    /// An item that is in a mode.
    private struct Resident {
        var item: RunLoopItem
        var places: ItemPlaces
    }

    private struct CommonItem {
        var item: RunLoopItem
        var serial: Int
        /// The modes to which it was added by itself, too.
        var ownModes: Set<Int>
    }

    /// Every mode that something was added to, or that was run. Modes never go away, so an index names a mode for ever.
    var modes = [ModeState(name: .default)]
    private var indices: [RunLoopMode: Int] = [.default: 0]
    /// The other modes that a block was posted for.
    private var namesOfBlocks: Set<RunLoopMode> = []
    private var residents: [ItemID: Resident] = [:]
    /// How many modes were looked at so far on behalf of items: what tests measure costs by.
    private(set) var modeSteps = 0
    private(set) var commonModes: Set<RunLoopMode> = [.default]
    private var commonItems: [ItemID: CommonItem] = [:]
    private var lastSerial = 0

    var waitStrategy = WaitStrategy.standard
    var mainQueue: MainQueueState?
    var blocks = BlockQueue()
    /// A job is under way: runs nested inside of it leave the other jobs waiting.
    var isRunningJob = false
    /// The requests of the perform family that wait for their call.
    var requests = PerformRequests()
    /// The runs that are under way, innermost last.
    var runs: [ActiveRun] = []
    /// The version-1 sources whose perform routines are under way.
    var performing: [ItemID] = []
    /// The observers whose handlers are under way.
    var firingObservers: Set<ItemID> = []
    /// A stop that came while no run could take it, for the next one.
    var stopIsPending = false
    private(set) var hasEnded = false

    var modeNames: Set<RunLoopMode> { namesOfBlocks.union(indices.keys) }

    /// The index of a mode that something was added to.
    func index(of mode: RunLoopMode) -> Int? {
        indices[mode]
    }

    /// The index of a mode that is known, if only from a block.
    mutating func knownIndex(of mode: RunLoopMode) -> Int? {
        namesOfBlocks.contains(mode) ? makeIndex(of: mode) : indices[mode]
    }

    /// Makes a mode known because a block was posted for it: that takes a name, no more.
    mutating func noteBlock(in mode: RunLoopMode) {
        if mode != .common, indices[mode] == nil { namesOfBlocks.insert(mode) }
    }

    /// The index of a mode, which is made when it is new.
    mutating func makeIndex(of mode: RunLoopMode) -> Int {
        if let index = indices[mode] { return index }
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

    /// Takes out the first of the blocks for the mode and the jobs that may be run now.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - limit: the number of the last one that may be taken.
    /// - Returns: what was taken; nil when nothing waits.
    mutating func takeBlock(for mode: Int, upTo limit: UInt64) -> BlockQueue.Item? {
        if blocks.isEmpty { return nil }
        let name = modes[mode].name
        return blocks.takeFirst(
            for: name, isCommon: commonModes.contains(name), admitsJobs: !isRunningJob, upTo: limit)
    }

    /// Whether a loop that sleeps has to be woken for a block that was posted just now.
    func mustWake(forBlockIn names: [RunLoopMode]) -> Bool {
        guard let run = runs.last else { return false }
        let name = modes[run.mode].name
        return names.contains(name) || names.contains(.common) && commonModes.contains(name)
    }

    /// Whether a loop that sleeps has to be woken for a job that was posted just now.
    var mustWakeForJob: Bool { !isRunningJob && mustWake(forBlockIn: [.common]) }

    /// Whether nothing in the mode keeps a run going: observers do not, sources, timers and waiting blocks do.
    func isEmpty(_ mode: Int) -> Bool {
        var count = modes[mode].lastingCount
        // The main queue does not keep a run going that was started inside of it, and that cannot serve it.
        if let mainQueue, mainQueue.isServed, isMember(mainQueue.source, of: mode) { count -= 1 }
        return count == 0 && !hasBlock(for: mode)
    }
}

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
            let ownModes = Set(residents[item.id]?.places.all ?? [])
            commonItems[item.id] = CommonItem(item: item, serial: lastSerial, ownModes: ownModes)
        }
        return commonModes.sorted { $0.rawValue < $1.rawValue }.map { makeIndex(of: $0) }.filter { enter(item, $0) }
    }

    /// Puts an item into a mode.
    ///
    /// - Returns: whether it is new there.
    private mutating func enter(_ item: RunLoopItem, _ index: Int) -> Bool {
        if let resident = residents[item.id] {
            if resident.places.contains(index) { return false }
            residents[item.id]?.places.append(index)
        } else {
            residents[item.id] = Resident(item: item, places: ItemPlaces(index))
        }
        modes[index].insert(item)
        return true
    }

    /// The modes that an item is in.
    mutating func places(of id: ItemID) -> [Int] {
        let found = residents[id]?.places.all ?? []
        modeSteps += found.count
        return found
    }

    /// Has a port-based source looked at in each mode that it is in. Looks at what is known of it where it lies: a copy
    /// counts references.
    ///
    /// - Returns: whether a loop that sleeps has to be woken for it.
    mutating func noteRing(of id: ItemID, order: Int) -> Bool {
        guard let index = residents.index(forKey: id) else { return false }
        func places(_ resident: inout Resident) -> ItemPlaces { resident.places }
        switch places(&residents.values[index]) {
        case .one(let mode): return noteRing(of: id, order: order, in: Int(mode))
        case .many(let modes):
            var mustWake = false
            for mode in modes where noteRing(of: id, order: order, in: mode) { mustWake = true }
            return mustWake
        }
    }

    private mutating func noteRing(of id: ItemID, order: Int, in mode: Int) -> Bool {
        modeSteps += 1
        modes[mode].ready.insert(id, order: order)
        return isRunning(in: mode)
    }

    /// Takes an item out of a mode, or of the common modes: then it stays in those to which it was added by itself.
    ///
    /// - Returns: the modes that it has left, with the registrations of its descriptor.
    mutating func remove(_ id: ItemID, from mode: RunLoopMode) -> [Departure] {
        guard mode == .common else {
            guard let index = indices[mode] else { return [] }
            commonItems[id]?.ownModes.remove(index)
            return leave(id, [index])
        }
        guard let common = commonItems.removeValue(forKey: id) else { return [] }
        return leave(id, places(of: id).sorted().filter { !common.ownModes.contains($0) })
    }

    /// Takes an item out of everything.
    mutating func removeEverywhere(_ id: ItemID) -> [Departure] {
        commonItems[id] = nil
        return leave(id, places(of: id).sorted())
    }

    /// A mode that an item has left.
    struct Departure: Sendable {
        var mode: Int
        var name: RunLoopMode
        var watch: DescriptorWatch?
    }

    private mutating func leave(_ id: ItemID, _ indices: [Int]) -> [Departure] {
        guard let resident = residents[id] else { return [] }
        let leaving = indices.filter { resident.places.contains($0) }
        let staying = ItemPlaces(resident.places.all.filter { !leaving.contains($0) })
        residents[id] = staying.map { Resident(item: resident.item, places: $0) }
        return leaving.map { Departure(mode: $0, name: modes[$0].name, watch: modes[$0].remove(resident.item)) }
    }

    /// Whether an item is in a mode.
    func isMember(_ id: ItemID, of mode: Int) -> Bool {
        residents[id]?.places.contains(mode) ?? false
    }

    /// The source with this number, if it is in the mode.
    func source(_ id: ItemID, in mode: Int) -> RunLoopSource? {
        guard let resident = residents[id], resident.places.contains(mode), case .source(let source) = resident.item
        else { return nil }
        return source
    }

    /// The timer with this number, if it is in the mode.
    func timer(_ id: ItemID, in mode: Int) -> RunLoopTimer? {
        guard case .timer(let timer) = residents[id]?.item, isMember(id, of: mode) else { return nil }
        return timer
    }

    func contains(_ id: ItemID, in mode: RunLoopMode) -> Bool {
        if mode == .common { return commonItems[id] != nil }
        return indices[mode].map { isMember(id, of: $0) } ?? false
    }

    /// Whether the item is anywhere in this loop.
    func contains(_ id: ItemID) -> Bool {
        commonItems[id] != nil || residents[id] != nil
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

    /// Every item that is anywhere in this loop.
    var everyItem: [RunLoopItem] {
        residents.values.map(\.item) + commonItems.values.map(\.item).filter { residents[$0.id] == nil }
    }

    /// Every source, with each mode that it is in: by mode, the oldest first.
    var sourcesByMode: [(source: RunLoopSource, mode: Int)] {
        residents.values.flatMap { resident -> [(source: RunLoopSource, mode: Int)] in
            guard case .source(let source) = resident.item else { return [] }
            return resident.places.all.map { (source, $0) }
        }.sorted { ($0.mode, $0.source.id) < ($1.mode, $1.source.id) }
    }

    /// Empties the loop, because its thread ends.
    ///
    /// - Returns: all that was in it, for the caller to release without the lock.
    mutating func end() -> RunLoopState {
        let all = self
        self = RunLoopState()
        // The indices stay true for whoever holds one.
        modes = all.modes.map { ModeState(name: $0.name) }
        indices = all.indices
        namesOfBlocks = all.namesOfBlocks
        hasEnded = true
        return all
    }
}
