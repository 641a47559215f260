// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// All state of a loop: plain values, which change under the loop's one lock. Nothing here calls out, waits or makes a
// system call.

/// A loop's state.
struct RunLoopState: Sendable {
    /// An item that is in a mode, and is not registered in the table.
    struct Resident {
        var item: RunLoopItem
        var places: ModeList
    }

    struct CommonItem {
        var item: RunLoopItem
        var serial: Int
        /// The modes to which it was added individually as well.
        var ownModes: Set<Int>
    }

    /// Every mode that something was added to, or that was run. Modes are never removed, so an index names a mode
    /// permanently.
    var modes = [ModeState(name: .default)]
    private var indices: [RunLoopMode: Int] = [.default: 0]
    /// The other modes that a block was posted for.
    private var namesOfBlocks: Set<RunLoopMode> = []
    /// The port-based sources.
    var seats = RegistrationTable()
    /// All other items.
    var residents: [ItemID: Resident] = [:]
    /// How many modes were examined so far on behalf of items: tests measure costs by it.
    var modeSteps = 0
    var commonModes: Set<RunLoopMode> = [.default]
    var commonItems: [ItemID: CommonItem] = [:]
    var lastSerial = 0

    var waitStrategy = WaitStrategy.standard
    var mainQueue: MainQueueState?
    /// A timer tries again to serve it.
    var isMainQueueLate = false
    /// For sources whose descriptors the kernel does not watch: the timers that try again.
    var lateWatches: [ItemID: RunLoopTimer] = [:]
    var blocks = BlockQueue()
    /// A job is in progress: runs nested inside it leave the other jobs waiting.
    var isRunningJob = false
    /// The requests of the perform family that wait for their call.
    var requests = PerformRequests()
    /// The runs that are in progress, innermost last.
    var runs: [ActiveRun] = []
    /// The observers whose handlers are being called.
    var firingObservers: Set<ItemID> = []
    /// A stop for the next run, which was requested while no run could accept it.
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

    /// Records a mode that a block was posted for: this stores only its name.
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

    /// Dequeues the first of the blocks for the mode and the jobs that may be run now.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - limit: the highest number that may be dequeued.
    /// - Returns: the entry; nil when nothing waits.
    mutating func takeBlock(for mode: Int, upTo limit: UInt64) -> BlockQueue.Item? {
        if blocks.isEmpty { return nil }
        let name = modes[mode].name
        return blocks.takeFirst(
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
    func isEmpty(_ mode: Int) -> Bool {
        var count = modes[mode].lastingCount
        // The main queue does not keep a run going that was started inside it and cannot serve it.
        if let mainQueue, mainQueue.isServed, seats.seat(of: mainQueue.source, in: mode) != nil { count -= 1 }
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
