// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Every callout leaves through one of these functions, so that a stack shows what kind of callout runs (S9). The names
// are those of CFRunLoop without the underscores. Each counts its callout after it, which also keeps its frame: nothing
// here can become a jump.

import PortSystem

extension ThreadRunLoop {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION(
        _ observer: RunLoopObserver, _ activity: RunLoopActivity
    ) {
        observer.handler(observer, activity)
        counts.didCallOut()
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION(_ timer: RunLoopTimer) {
        timer.handler(timer)
        counts.didCallOut()
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_BLOCK(_ entry: BlockQueue.Entry) {
        entry.block()
        counts.didCallOut()
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(_ source: RunLoopSource) {
        _ = source.performRoutine()
        counts.didCallOut()
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    // Returns whether the source handled anything. (It must differ from the one above, or the optimizer makes one function
    // of the two.)
    @inline(never)
    func RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION(_ source: RunLoopSource) -> Bool {
        let hasHandled = source.performRoutine()
        counts.didCallOut()
        return hasHandled
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    @inline(never)
    func RUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE() {
        sysServeMainQueue()
        counts.didCallOut()
    }
}
