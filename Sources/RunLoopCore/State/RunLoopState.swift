// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// All state of a loop: pure values that decide, under the loop's one lock. Nothing here calls out, waits or makes a
// system call.

/// What a loop knows.
struct RunLoopState: Sendable {
    /// An item that is in a mode, and has no seat.
    struct Resident {
        var item: RunLoopItem
        var places: ModeList
    }

    struct CommonItem {
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
    /// The port-based sources.
    var seats = RegistrationTable()
    /// All other items.
    var residents: [ItemID: Resident] = [:]
    /// How many modes were looked at so far on behalf of items: what tests measure costs by.
    var modeSteps = 0
    var commonModes: Set<RunLoopMode> = [.default]
    var commonItems: [ItemID: CommonItem] = [:]
    var lastSerial = 0

    var waitStrategy = WaitStrategy.standard
    var mainQueue: MainQueueState?
    /// A timer tries again to serve it.
    var isMainQueueLate = false
    /// Of sources whose descriptors the kernel does not watch: the timers that have it try again.
    var lateWatches: [ItemID: RunLoopTimer] = [:]
    var blocks = BlockQueue()
    /// A job is under way: runs nested inside of it leave the other jobs waiting.
    var isRunningJob = false
    /// The requests of the perform family that wait for their call.
    var requests = PerformRequests()
    /// The runs that are under way, innermost last.
    var runs: [ActiveRun] = []
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
        if let mainQueue, mainQueue.isServed, seats.seat(of: mainQueue.source, in: mode) != nil { count -= 1 }
        return count == 0 && !hasBlock(for: mode)
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
