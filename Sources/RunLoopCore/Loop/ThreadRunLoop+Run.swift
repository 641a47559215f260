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
        let start = state.withLock { $0.beginRun(in: mode, inside: performing.ids) }
        guard case .runs(let index) = start else { return start == .stopped ? .stopped : .finished }
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
    /// - Returns: `.handledSource` when the condition is false, `.timedOut` at the deadline.
    package func run(
        mode: RunLoopMode, until deadline: MonotonicInstant, while condition: () -> Bool
    ) -> RunLoopRunResult {
        preconditionOnLoop("Running a loop")
        if mode == .common {
            fatalError("A request waits in one mode: the common modes stand for several. Name one of them.")
        }
        if !condition() { return .handledSource }
        let index = state.withLock { $0.beginConditionalRun(in: mode, inside: performing.ids) }
        var run = LoopRun(
            mode: index, deadline: deadline, polls: deadline != .distantFuture && deadline <= .now,
            returnsAfterSource: false, isConditional: true)
        return perform(&run, while: condition)
    }

    /// Steps 1 and 10 around the passes.
    private func perform(_ run: inout LoopRun, while condition: () -> Bool) -> RunLoopRunResult {
        let span = runBegins(until: run.deadline)
        let outer = doorbell.beginNesting()
        stopLooking()  // for the run inside which this one begins
        notify(.entry, in: run.mode)  // 1
        var result = stopResult()
        while result == nil {
            result = turn(&run, while: condition)  // 2 to 9
            if result == nil { doorbell.listen() }
        }
        notify(.exit, in: run.mode)  // 10
        runEnds(span, result ?? .finished)
        stopLooking()
        state.withLock { $0.endRun() }
        doorbell.endNesting(outer)
        return result ?? .finished
    }

    /// Steps 2 to 4.
    ///
    /// - Returns: whether a custom source was performed.
    private func beginTurn(_ run: LoopRun) -> Bool {
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
    private func turn(_ run: inout LoopRun, while condition: () -> Bool) -> RunLoopRunResult? {
        counts.didTurn()
        // Then steps 2 to 6 call nothing, so nothing on this thread can change that meanwhile.
        let isQuiet =
            !isInstrumented.load(ordering: .relaxed)
            && (state.holds(.quiet) || state.withLock { $0.isQuiet(run.mode) })
        var hasHandledSource = isQuiet ? false : beginTurn(run)
        let event: LoopEvent
        if isMain, !isQuiet, mainQueueGoesFirst(run) {  // 5
            event = .mainQueue
        } else {
            let polls = run.polls || hasHandledSource
            if !polls && !isQuiet { notify(.beforeWaiting, in: run.mode) }  // 6
            waitBegins(&run, polls: polls)
            event = waitForEvent(&run, polls: polls, while: condition)  // 7
            waitEnded(run, event, polls: polls)
            if !polls && !event.hasBegun { notify(.afterWaiting, in: run.mode) }  // 8
        }
        if handle(event, &run, while: condition) { hasHandledSource = true }  // 9
        // One check of the state covers the rest of this pass and the beginning of the next: it holds nothing for
        // either.
        let isPlain = state.find(.quiet) { state in
            if let past = run.pastWait { state.learn(from: past, in: run.mode) }
            return (state.isQuiet(run.mode), state.isPlain(run))
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
        case .source(let source, let seat, let hasBegun):
            return performReadySource(source, near: seat, hasBegun: hasBegun, &run, while: condition)
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
        state.withLock { $0.takeStop() } ? .stopped : nil
    }
}
