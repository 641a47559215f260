// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A run that is in progress.
struct LoopRun {
    /// The index of its mode.
    let mode: Int
    let deadline: MonotonicInstant
    /// The time limit was zero or less: poll, handle at most one event, never wait.
    let polls: Bool
    let returnsAfterSource: Bool
    /// The run continues until its condition or its deadline ends it; neither a stop nor an empty mode does.
    let isConditional: Bool
    /// When the caller of a conditional run is called next.
    var alarm = MonotonicInstant.distantFuture
    /// The last wait found due timers, so a ready source goes first in the next. A main queue that goes first, without
    /// a wait, leaves it as it is.
    var hasJustFiredTimers = false
    /// The last pass served the main queue, or there was none yet: it does not go before all others now.
    var hasJustServedMainQueue = true
    /// How many events were handled since the kernel was last polled.
    var eventsSincePoll = 0
    /// When the kernel must be polled again; nil before the first event since the last poll.
    var nextPoll: MonotonicInstant?

    /// Whether descriptors must be polled before the next event, so that a stream of events cannot starve them.
    mutating func isPollDue(at now: MonotonicInstant) -> Bool {
        if eventsSincePoll == 0 { return false }
        guard let nextPoll else {
            nextPoll = now.advanced(by: Tuning.timeBetweenPolls)
            return false
        }
        return eventsSincePoll >= Tuning.eventsBetweenPolls || nextPoll <= now
    }

    /// The kernel was polled.
    mutating func didPoll() { (eventsSincePoll, nextPoll) = (0, nil) }

    /// The wait of the current pass, if it found nothing at first, until its mode has learnt from it.
    var pastWait: LoopWait?
    /// The span of the current wait; 0 when no instrument was notified of its begin.
    var waitSpan: UInt64 = 0
    /// That wait found nothing to do.
    var hasSlept = false

    /// Stores what its mode will learn from a wait that has ended.
    mutating func didWait(_ wait: LoopWait, until now: MonotonicInstant) {
        if wait.start == nil { return }
        var wait = wait
        wait.end = now
        pastWait = wait
    }
}

extension RunLoopState {
    /// A run that is in progress.
    struct ActiveRun: Sendable {
        var mode: Int
        /// Whether a stop applies to it, or to the run below.
        var acceptsStops: Bool
        var isStopped = false
    }

    /// Begins a run inside the perform routines of version-1 sources, unless its mode is unknown or empty. A pending stop
    /// ends such a run too.
    ///
    /// - Returns: the index of its mode, nil when it does not begin; and its result then.
    mutating func beginRun(
        in mode: RunLoopMode, inside performing: [ItemID]
    ) -> (mode: Int?, result: RunLoopRunResult) {
        if mode == .common { return (nil, .finished) }
        let isStopped = consumePendingStop()
        let result = isStopped ? RunLoopRunResult.stopped : .finished
        guard let index = knownIndex(of: mode), !isEmpty(index) else { return (nil, result) }
        begin(ActiveRun(mode: index, acceptsStops: true, isStopped: isStopped), inside: performing)
        return (index, result)
    }

    /// Begins a run that leaves stops to the run below, whatever its mode contains.
    mutating func beginConditionalRun(in mode: RunLoopMode, inside performing: [ItemID]) -> Int {
        let index = makeIndex(of: mode)
        begin(ActiveRun(mode: index, acceptsStops: false), inside: performing)
        return index
    }

    private mutating func begin(_ run: ActiveRun, inside performing: [ItemID]) {
        runs.append(run)
        // A source that is being performed is checked for more afterwards; a run inside it cannot wait for that.
        for id in performing {
            guard let number = registrations.registration(of: id, in: run.mode),
                let order = registrations.list[number].source?.order
            else { continue }
            modes[run.mode].ready.insert(number, order: order, &registrations)
        }
    }

    /// Ends the innermost run. A stop that it did not use goes to the run below.
    mutating func endRun() {
        if runs.popLast()?.isStopped == true { stop() }
    }

    /// Stops the innermost run that accepts stops, or else the next run.
    mutating func stop() {
        if let index = runs.lastIndex(where: \.acceptsStops) {
            runs[index].isStopped = true
        } else {
            stopIsPending = true
        }
    }

    mutating func stopAllRuns() {
        for index in runs.indices where runs[index].acceptsStops { runs[index].isStopped = true }
    }

    /// Whether the innermost run was stopped.
    var isStopped: Bool { runs.last?.isStopped ?? false }

    mutating func consumeStop() -> Bool {
        guard isStopped else { return false }
        runs[runs.count - 1].isStopped = false
        return true
    }

    private mutating func consumePendingStop() -> Bool {
        if runs.contains(where: \.acceptsStops) { return false }
        defer { stopIsPending = false }
        return stopIsPending
    }

    /// How a run may wait; not at all when something is ready already.
    func waitPlan(_ run: LoopRun) -> WaitPlan {
        if !modes[run.mode].signalled.isEmpty || !modes[run.mode].ready.isEmpty { return .none }
        if hasBlock(for: run.mode) { return .none }
        if !run.isConditional, isStopped || isEmpty(run.mode) { return .none }
        let limit = min(min(run.deadline, run.alarm), modes[run.mode].timers.wakeDate ?? .distantFuture)
        var plan = WaitPlan(limit: limit, watchesNothing: modes[run.mode].descriptors == nil)
        switch waitStrategy {
        case .blocking: break
        case .spinning(let duration): plan.spin = duration
        case .adaptive:
            if modes[run.mode].spins.expectsShortWait { plan.spin = Tuning.spinLimit }
            plan.isConsiderate = true
        }
        return plan
    }

    /// Lets a mode learn from a wait that has ended.
    mutating func learn(from wait: LoopWait, in mode: Int) {
        guard let start = wait.start else { return }
        modes[mode].spins.didWait(start.duration(to: wait.end), wait.spin)
        if let time = wait.lostTime { modes[mode].spins.didLose(time, until: wait.end) }
    }
}

/// How long a wait may take, and how much of it may be spent spinning.
struct WaitPlan: Sendable {
    var limit: MonotonicInstant
    var spin = Duration.zero
    /// Whether to spin only where that leaves a processor to other threads, and to yield this one to them now and then.
    var isConsiderate = false
    /// No descriptor is watched.
    var watchesNothing = false

    static var none: WaitPlan { WaitPlan(limit: .distantPast) }
}

/// What a wait has done.
struct LoopWait {
    /// When it found nothing; nil when it found something at once.
    var start: MonotonicInstant?
    /// When it was over.
    var end = MonotonicInstant.distantPast
    var spin = SpinPredictor.Spin.none
    /// How long another thread kept the processor to which the spin had yielded it; nil when none did for long.
    var lostTime: Duration?
    var hasPolled = false
    /// It has found something in memory that the loop still polled.
    var hasReceivedArrivals = false
}
