// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Every callout leaves through one of these functions, so that a stack shows what kind of callout runs. The names
// are those of CFRunLoop without the underscores.
//
// Each notifies the loop's instruments before and after: see RunLoopInstrument.swift. What follows the call also keeps the
// frame on the stack: no call here can become a tail call.

import PortSystem

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
