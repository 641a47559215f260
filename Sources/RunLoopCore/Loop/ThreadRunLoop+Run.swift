// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Runs the loop in the default mode until it is stopped or has nothing left to wait for.
    ///
    /// - Returns: which of the two: `.stopped` or `.finished`.
    /// - Important: Thread safety: loop thread only, traps elsewhere.
    @available(*, noasync, message: "It blocks the thread. Run a loop on a thread of its own, as ResidentThread does.")
    @discardableResult
    public func run() -> RunLoopRunResult {
        run(mode: .default, until: .distantFuture)
    }

    /// Runs the loop in a mode for some time.
    ///
    /// Blocks until one of the results holds. A limit of zero or less means: handle what is ready, at most one timer or
    /// source event besides the signalled custom sources, and do not wait. May be called inside any callout of the same
    /// loop: the run is then a nested run with its own mode, limit and stop.
    ///
    /// - Parameters:
    ///   - mode: the mode; in ``RunLoopMode/common``, an unknown or an empty one the run finishes at once.
    ///   - limit: the longest time.
    ///   - returnAfterSourceHandled: whether to return after the pass in which a source was handled.
    /// - Returns: why it returned.
    /// - Important: Thread safety: loop thread only, traps elsewhere.
    @available(*, noasync, message: "It blocks the thread. Run a loop on a thread of its own, as ResidentThread does.")
    @discardableResult
    public func run(
        mode: RunLoopMode = .default, for limit: Duration, returnAfterSourceHandled: Bool = false
    ) -> RunLoopRunResult {
        let polls = limit <= .zero
        return run(
            mode, until: polls ? .distantPast : .after(limit), polls: polls,
            returnsAfterSource: returnAfterSourceHandled)
    }

    /// Runs the loop in a mode until a deadline. See ``run(mode:for:returnAfterSourceHandled:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode; in ``RunLoopMode/common``, an unknown or an empty one the run finishes at once.
    ///   - deadline: when to return at the latest; ``MonotonicInstant/distantFuture`` for no limit.
    ///   - returnAfterSourceHandled: whether to return after the pass in which a source was handled.
    /// - Returns: why it returned.
    /// - Important: Thread safety: loop thread only, traps elsewhere.
    @available(*, noasync, message: "It blocks the thread. Run a loop on a thread of its own, as ResidentThread does.")
    @discardableResult
    public func run(
        mode: RunLoopMode = .default, until deadline: MonotonicInstant, returnAfterSourceHandled: Bool = false
    ) -> RunLoopRunResult {
        let polls = deadline != .distantFuture && deadline <= .now
        return run(mode, until: deadline, polls: polls, returnsAfterSource: returnAfterSourceHandled)
    }

    private func run(
        _ mode: RunLoopMode, until deadline: MonotonicInstant, polls: Bool, returnsAfterSource: Bool
    ) -> RunLoopRunResult {
        preconditionOnLoop("Running a loop")
        if isMain { beginServingMainQueue() }
        let (index, result) = state.withLock { $0.beginRun(in: mode, inside: threadState.performing) }
        guard let index else { return result }
        var run = LoopRun(
            mode: index, deadline: deadline, polls: polls, returnsAfterSource: returnsAfterSource,
            isConditional: false)
        return perform(&run, while: { true })
    }

    /// Runs the loop in a mode until a condition is false, for a request that waits for its answer.
    ///
    /// The run continues while the mode is empty. A stop during it is left for the run below it.
    ///
    /// - Parameters:
    ///   - mode: the mode, made when it is unknown.
    ///   - deadline: when to give up.
    ///   - condition: is evaluated before each sleep and after each event, with no lock held. Another thread that makes
    ///     it false calls ``wakeUp()`` afterwards.
    ///   - alarm: when to call `didReachAlarm`, which says when to call it next.
    ///   - didReachAlarm: is called with no lock held while the condition is true.
    /// - Returns: `.handledSource` when the condition is false, `.timedOut` at the deadline.
    package func run(
        mode: RunLoopMode, until deadline: MonotonicInstant, while condition: () -> Bool,
        alarm: MonotonicInstant = .distantFuture, didReachAlarm: () -> MonotonicInstant = { .distantFuture }
    ) -> RunLoopRunResult {
        preconditionOnLoop("Running a loop")
        if mode == .common {
            fatalError("A request waits in one mode: the common modes stand for several. Name one of them.")
        }
        if !condition() { return .handledSource }
        let index = state.withLock { $0.beginConditionalRun(in: mode, inside: threadState.performing) }
        var run = LoopRun(
            mode: index, deadline: deadline, polls: deadline != .distantFuture && deadline <= .now,
            returnsAfterSource: false, isConditional: true, alarm: alarm)
        return perform(&run, while: condition, didReachAlarm: didReachAlarm)
    }

    /// Steps 1 and 10 around the passes.
    private func perform(
        _ run: inout LoopRun, while condition: () -> Bool,
        didReachAlarm: () -> MonotonicInstant = { .distantFuture }
    ) -> RunLoopRunResult {
        let span = runBegins(until: run.deadline)
        let outer = parker.beginNesting()
        endBusyPolling()  // for the run inside which this one begins
        notify(.entry, in: run.mode)  // 1
        var result = stopResult()
        while result == nil {
            result = pass(&run, while: condition)  // 2 to 9
            if result == nil {
                if run.alarm != .distantFuture, run.alarm <= .now { run.alarm = didReachAlarm() }
                parker.listen()
            }
        }
        notify(.exit, in: run.mode)  // 10
        runEnds(span, result ?? .finished)
        endBusyPolling()
        state.withLock { $0.endRun() }
        parker.endNesting(outer)
        return result ?? .finished
    }

    /// Steps 2 to 4.
    ///
    /// - Returns: whether a custom source was performed.
    private func beginPass(_ run: LoopRun) -> Bool {
        notify(.beforeTimers, in: run.mode)  // 2
        notify(.beforeSources, in: run.mode)  // 3
        performBlocks(in: run.mode)
        let hasHandledSource = performSignalledSources(in: run.mode, onlyFirst: run.returnsAfterSource)  // 4
        if hasHandledSource { performBlocks(in: run.mode) }
        return hasHandledSource
    }

    /// One pass: steps 2 to 9.
    ///
    /// - Returns: the run's result; nil when the run continues.
    private func pass(_ run: inout LoopRun, while condition: () -> Bool) -> RunLoopRunResult? {
        counts.didBeginPass()
        // Then steps 2 to 6 call nothing, so nothing on this thread can change that meanwhile.
        let isIdle =
            !isInstrumented.load(ordering: .relaxed)
            && (state.holds(.idle) || state.withLock { $0.isIdle(run.mode) })
        var hasHandledSource = isIdle ? false : beginPass(run)
        let event: LoopEvent
        if isMain, !isIdle, mainQueueGoesFirst(run) {  // 5
            event = .mainQueue
        } else {
            let polls = run.polls || hasHandledSource
            if !polls && !isIdle { notify(.beforeWaiting, in: run.mode) }  // 6
            waitBegins(&run, polls: polls)
            event = waitForEvent(&run, polls: polls, while: condition)  // 7
            waitEnded(run, event, polls: polls)
            if !polls && !event.hasBegun { notify(.afterWaiting, in: run.mode) }  // 8
        }
        if handle(event, &run, while: condition) { hasHandledSource = true }  // 9
        // One check of the state covers the rest of this pass and the beginning of the next: it holds nothing for
        // either.
        let isPlain = state.find(.idle) { state in
            if let past = run.pastWait { state.learn(from: past, in: run.mode) }
            return (state.isIdle(run.mode), state.isPlain(run))
        }
        run.pastWait = nil
        if !isPlain { performBlocks(in: run.mode) }
        return result(run, hasHandledSource: hasHandledSource, isPlain: isPlain, while: condition)
    }

    /// Handles the event of a pass.
    ///
    /// - Returns: whether it was a source that handled something.
    private func handle(_ event: LoopEvent, _ run: inout LoopRun, while condition: () -> Bool) -> Bool {
        run.hasJustServedMainQueue = false
        switch event {
        case .nothing: return false
        case .timers: fireDueTimers(in: run.mode)
        case .mainQueue:
            run.hasJustServedMainQueue = true
            serveMainQueue(in: run.mode)
        case .source(let source, let registration, let hasBegun):
            return performReadySource(source, near: registration, hasBegun: hasBegun, &run, while: condition)
        }
        return false
    }

    private func result(
        _ run: LoopRun, hasHandledSource: Bool, isPlain: Bool, while condition: () -> Bool
    ) -> RunLoopRunResult? {
        let isOver = run.polls || run.deadline != .distantFuture && run.deadline <= .now
        if run.isConditional {
            if !condition() { return .handledSource }
            return isOver ? .timedOut : nil
        }
        if !isPlain, let stopped = stopResult() { return stopped }
        if run.returnsAfterSource && hasHandledSource { return .handledSource }
        if isOver { return .timedOut }
        return !isPlain && state.withLock { $0.isEmpty(run.mode) } ? .finished : nil
    }

    /// Consumes the run's stop.
    private func stopResult() -> RunLoopRunResult? {
        state.withLock { $0.consumeStop() } ? .stopped : nil
    }
}

// MARK: - Handling

extension ThreadRunLoop {
    /// Calls the observers of an activity: those that the loop has now, except those that are being called already.
    func notify(_ activity: RunLoopActivity, in mode: Int) {
        activityBegins(activity)
        for observer in state.withLock({ $0.modes[mode].observers.observers(of: activity) }) {
            guard observer.isValid, state.withLock({ $0.beginObserver(observer.id, in: mode) }) else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION(observer, activity)
            if !observer.repeats { observer.invalidate() }
            state.withLock { _ = $0.firingObservers.remove(observer.id) }
        }
    }

    /// Calls the blocks and runs the jobs that wait for the mode now; those that they post wait for the next time.
    ///
    /// Each is dequeued just before it is called. So a run that is nested inside one finds the rest, and continues with
    /// it.
    func performBlocks(in mode: Int) {
        var (last, isJob) = (UInt64?.none, false)
        while let item = state.withLock({ $0.dequeueBlock(for: mode, upTo: &last, afterJob: &isJob) }) { perform(item) }
    }

    func fireDueTimers(in mode: Int) {
        let now = MonotonicInstant.now
        let due = state.withLock { state in
            let ids = state.modes[mode].timers.due(at: now)
            return ids.compactMap { state.timer($0, in: mode) }
        }
        // By order; equal orders stay as they are, by date and creation.
        let sorted = due.enumerated().sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }
        for timer in sorted.map(\.element) {
            let isHere = state.withLock { $0.isMember(timer.id, of: mode) }
            guard isHere, timer.beginFiring(at: .now) else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION(timer)
            timer.endFiring()
        }
    }

    /// Performs the custom sources that are signalled now, or the first of them.
    ///
    /// - Returns: whether there was one.
    func performSignalledSources(in mode: Int, onlyFirst: Bool) -> Bool {
        if onlyFirst { return performFirstSignalledSource(in: mode) }
        var hasHandled = false
        for source in state.withLock({ $0.signalledSources(in: mode) }) {
            let isHere = state.withLock { $0.consumeSignal(source.id, in: mode) }
            guard isHere, source.consumeSignal() else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(source)
            hasHandled = true
        }
        return hasHandled
    }

    private func performFirstSignalledSource(in mode: Int) -> Bool {
        while let source = state.withLock({ $0.dequeueFirstSignalled(in: mode) }) {
            // Another mode or loop may have performed it.
            guard source.consumeSignal() else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(source)
            return true
        }
        return false
    }
}

// MARK: - PortSources

// How a pass performs the port-based source that it has found, and when the next passes can skip their other steps.
//
// A stream of messages to one port leads to passes of which only the source's callout is observable: no observer is in
// the mode, and no block, signalled source, timer, stop or other ready source waits. One check of the loop's state
// establishes that; as long as no thread has accessed the state since, and the mode has no timer, it is not checked
// again. Then the source is performed again in place of the other steps. Such a pass is counted like any other. It is
// never a pass in which descriptors are due to be polled, a run must return, or an instrument is attached.
extension ThreadRunLoop {
    /// Performs a port-based source that was found ready, in this pass and in the following ones that would find
    /// nothing else. The registration is its last index in the table; one that has begun has left the ready list.
    ///
    /// - Returns: whether it handled anything: false when it was handled or removed elsewhere meanwhile.
    func performReadySource(
        _ source: RunLoopSource, near registration: RegistrationIndex, hasBegun: Bool, _ run: inout LoopRun,
        while condition: () -> Bool
    ) -> Bool {
        if !hasBegun {
            guard state.withLock({ $0.dequeueForPerform(source, in: run.mode, near: registration) }) else {
                return false
            }
            threadState.beginPerform(source)
        }
        source.isNotified.store(false, ordering: .sequentiallyConsistent)
        let outcome = RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION(source) {
            mayContinue(with: source, near: registration, &run, while: condition)
        }
        threadState.endPerform()
        if outcome.isReady != false, source.isValid, outcome.isReady ?? source.routine.isReady() { source.ring() }
        return outcome.hasHandled
    }

    /// Whether the next pass would find nothing but the source, which has more: then that pass begins here.
    private func mayContinue(
        with source: RunLoopSource, near registration: RegistrationIndex, _ run: inout LoopRun,
        while condition: () -> Bool
    ) -> Bool {
        if run.polls || run.returnsAfterSource || isInstrumented.load(ordering: .relaxed) { return false }
        if run.isConditional && !condition() { return false }
        // A run without a limit needs no exact time. Whether descriptors are due to be polled is decided by a clock
        // that lags by up to one timer interrupt, and is much cheaper. The beginning of that interval is exact:
        // otherwise the next wait would find it over.
        let now = run.deadline == .distantFuture && run.nextPoll != nil ? MonotonicInstant.coarse : .now
        if run.deadline <= now || run.alarm <= now || run.isPollDue(at: now) { return false }
        if !state.holds(.onlySource) {
            let mayContinue = state.find(.onlySource) { state in
                let mayContinue = state.mayContinue(with: source, in: run.mode, near: registration, at: .now)
                return (mayContinue && state.modes[run.mode].timers.isEmpty, mayContinue)
            }
            if !mayContinue { return false }
            source.isNotified.store(false, ordering: .sequentiallyConsistent)
        }
        run.eventsSincePoll += 1
        run.hasJustFiredTimers = false
        counts.didBeginPass()
        return true
    }
}

/// What a loop has done so far: written by its thread only, readable anywhere.
final class LoopCounts: Sendable {
    private let passCount = Atomic<Int>(0)
    private let pollCount = Atomic<Int>(0)
    private let sleepCount = Atomic<Int>(0)
    private let paidSpinCount = Atomic<Int>(0)
    private let failedSpinCount = Atomic<Int>(0)

    var passes: Int { passCount.load(ordering: .relaxed) }

    /// Waits in the kernel, including polls with zero timeout.
    var kernelWaits: Int { pollCount.load(ordering: .relaxed) + sleepCount.load(ordering: .relaxed) }

    var waits: WaitCounts {
        WaitCounts(
            sleeps: sleepCount.load(ordering: .relaxed), spinsThatPaid: paidSpinCount.load(ordering: .relaxed),
            spinsThatDidNot: failedSpinCount.load(ordering: .relaxed))
    }

    func didBeginPass() { Self.raise(passCount) }

    func didPoll(sleeping: Bool) {
        if sleeping { Self.raise(sleepCount) } else { Self.raise(pollCount) }
    }

    func didSpin(paid: Bool) {
        if paid { Self.raise(paidSpinCount) } else { Self.raise(failedSpinCount) }
    }

    private static func raise(_ count: borrowing Atomic<Int>) {
        count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
}
