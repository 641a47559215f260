// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How tracers and stall monitors observe a loop: the loop notifies them of each run, activity, callout and wait, on its
// own thread and with no lock held.
//
// All of that goes through the functions below. While a loop has no instrument, a run, an activity, a callout or a wait
// costs one relaxed load of `isInstrumented`, and its end a comparison of its span with zero.
//
// A span is a number that a begin and its end have in common. An instrument that is added during a run receives ends
// whose begins it has not received; it recognises them by their spans. Zero is no span: no instrument was notified of the
// begin, so none is notified of the end.

import PortSystem
import Synchronization

/// Is notified of what a loop does.
protocol RunLoopInstrument: AnyObject, Sendable {
    /// Something has happened. Called on the loop's thread.
    func note(_ event: RunLoopTraceEvent)
    /// The loop has checked everything, has found nothing to do, and is about to sleep: once or more within a wait.
    /// Called on the loop's thread.
    func loopFallsIdle(at time: MonotonicInstant)
    /// The loop's thread ends. No call follows.
    func loopDidEnd()
}

extension ThreadRunLoop {
    /// Notifies an instrument of everything from now on, unless the loop has ended.
    func add(_ instrument: any RunLoopInstrument) {
        instruments.withLock { instruments in
            if instruments?.contains(where: { $0 === instrument }) == false { instruments?.append(instrument) }
            isInstrumented.store(instruments?.isEmpty == false, ordering: .relaxed)
        }
    }

    /// Stops notifying an instrument; a notification that is in progress still arrives.
    func remove(_ instrument: any RunLoopInstrument) {
        instruments.withLock { instruments in
            instruments?.removeAll { $0 === instrument }
            isInstrumented.store(instruments?.isEmpty == false, ordering: .relaxed)
        }
    }

    /// The loop's thread ends.
    func endInstruments() {
        let all = instruments.withLock { instruments in
            isInstrumented.store(false, ordering: .relaxed)
            return instruments.take()
        }
        for instrument in all ?? [] { instrument.loopDidEnd() }
    }
}

extension ThreadRunLoop {
    @inline(__always)
    func runBegins(until deadline: MonotonicInstant) -> UInt64 {
        isInstrumented.load(ordering: .relaxed) ? reportBegin(.runBegin(until: deadline)) : 0
    }

    @inline(__always)
    func runEnds(_ span: UInt64, _ result: RunLoopRunResult) {
        // Also for instruments that were added during the run: a monitor has to know that the loop has left it.
        if span != 0 || isInstrumented.load(ordering: .relaxed) { report(.runEnd(result), span) }
    }

    @inline(__always)
    func activityBegins(_ activity: RunLoopActivity) {
        if isInstrumented.load(ordering: .relaxed) { report(.activity(activity), 0) }
    }

    @inline(__always)
    func calloutBegins(_ callout: @autoclosure () -> RunLoopCallout) -> UInt64 {
        isInstrumented.load(ordering: .relaxed) ? reportBegin(.calloutBegin(callout())) : 0
    }

    @inline(__always)
    func calloutEnded(_ span: UInt64, _ callout: @autoclosure () -> RunLoopCallout) {
        if span != 0 { report(.calloutEnd(callout()), span) }
    }

    /// Step 7 begins.
    @inline(__always)
    func waitBegins(_ run: inout LoopRun, polls: Bool) {
        run.hasSlept = false
        run.waitSpan = isInstrumented.load(ordering: .relaxed) ? reportWait(run, polls: polls) : 0
    }

    /// The wait has found nothing to do: the loop is going to sleep.
    @inline(__always)
    func waitFallsIdle(_ run: inout LoopRun) {
        run.hasSlept = true
        if run.waitSpan != 0 { reportIdle() }
    }

    @inline(__always)
    func waitEnded(_ run: LoopRun, _ event: LoopEvent, polls: Bool) {
        if run.waitSpan != 0 { reportWaitEnd(run, event, polls: polls) }
    }
}

extension ThreadRunLoop {
    @inline(never)
    private func reportBegin(_ kind: RunLoopTraceEvent.Kind) -> UInt64 {
        let last = lastSpan.load(ordering: .relaxed)
        lastSpan.store(last &+ 1, ordering: .relaxed)
        let span = last &+ 1
        report(kind, span)
        return span
    }

    @inline(never)
    private func report(_ kind: RunLoopTraceEvent.Kind, _ span: UInt64) {
        let (mode, depth) = state.withLock { state in
            (state.runs.last.map { state.modes[$0.mode].name } ?? .default, state.runs.count)
        }
        let event = RunLoopTraceEvent(
            time: .now, threadID: threadID, mode: mode, depth: depth, kind: kind, span: span)
        for instrument in instruments.withLock({ $0 }) ?? [] { instrument.note(event) }
    }

    private func reportWait(_ run: LoopRun, polls: Bool) -> UInt64 {
        let limit = polls ? .distantPast : state.withLock { $0.waitPlan(run).limit }
        return reportBegin(.waitBegin(until: limit))
    }

    @inline(never)
    private func reportIdle() {
        let now = MonotonicInstant.now
        for instrument in instruments.withLock({ $0 }) ?? [] { instrument.loopFallsIdle(at: now) }
    }

    /// A wait that found nothing was ended by the limit or by a wake-up. The clock decides which: a wake-up at the very
    /// end of the limit counts as the limit.
    private func reportWaitEnd(_ run: LoopRun, _ event: LoopEvent, polls: Bool) {
        let cause: RunLoopTraceEvent.WaitCause =
            switch event {
            case .timers: .timers
            case .source: .source
            case .mainQueue: .mainDispatchQueue
            case .nothing where polls: .nothing
            case .nothing: run.deadline <= .now ? .limit : .wakeUp
            }
        report(.waitEnd(cause, slept: run.hasSlept), run.waitSpan)
    }
}

// MARK: - Callouts

// Every callout leaves through one of these functions, so that a stack shows what kind of callout runs. The names are
// those of CFRunLoop without the underscores. Each notifies the loop's instruments before and after. What follows the
// call also keeps the frame on the stack: no call here can become a tail call.
extension ThreadRunLoop {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION(
        _ observer: RunLoopObserver, _ activity: RunLoopActivity
    ) {
        let span = calloutBegins(RunLoopCallout(.observer, observer.name, observer.id))
        observer.handler(observer, activity)
        calloutEnded(span, RunLoopCallout(.observer, observer.name, observer.id))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION(_ timer: RunLoopTimer) {
        let span = calloutBegins(RunLoopCallout(.timer, timer.name, timer.id))
        timer.handler(timer)
        calloutEnded(span, RunLoopCallout(.timer, timer.name, timer.id))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_BLOCK(_ entry: BlockQueue.Entry) {
        let span = calloutBegins(RunLoopCallout(.block, entry.name))
        entry.block()
        calloutEnded(span, RunLoopCallout(.block, entry.name))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_AN_EXECUTOR_JOB(_ job: UnownedJob, _ kind: BlockQueue.JobKind) {
        let span = calloutBegins(RunLoopCallout(.job, nil))
        // SAFETY: the loop outlives the job: it is the calling thread's, and ends after its jobs.
        switch kind {
        case .actor: unsafe job.runSynchronously(on: asUnownedSerialExecutor())
        case .task: unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
        calloutEnded(span, RunLoopCallout(.job, nil))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(_ source: RunLoopSource) {
        let span = calloutBegins(RunLoopCallout(.customSource, source.name, source.id))
        _ = source.routine.perform()
        calloutEnded(span, RunLoopCallout(.customSource, source.name, source.id))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION(
        _ source: RunLoopSource, while beginNextPass: () -> Bool
    ) -> SourceOutcome {
        let span = calloutBegins(RunLoopCallout(.portSource, source.name, source.id))
        let outcome = source.routine.perform(while: beginNextPass)
        calloutEnded(span, RunLoopCallout(.portSource, source.name, source.id))
        return outcome
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE() {
        let span = calloutBegins(RunLoopCallout(.mainDispatchQueue, nil))
        sysServeMainQueue()
        calloutEnded(span, RunLoopCallout(.mainDispatchQueue, nil))
    }
}
