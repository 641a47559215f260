// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a pass performs the port-based source that it has found, and when the next passes can skip their other steps.
//
// A stream of messages to one port leads to passes of which only the source's callout is observable: no observer is in
// the mode, and no block, signalled source, timer, stop or other ready source waits. One check of the loop's state
// establishes that; as long as no thread has accessed the state since, and the mode has no timer, it is not checked
// again. Then the source is performed again in place of the other steps. Such a pass is counted like any other. It is
// never a pass in which descriptors are due to be polled, a run must return, or an instrument is attached.

import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Performs a port-based source that was found ready, in this pass and in the following ones that would find
    /// nothing else.
    ///
    /// - Parameters:
    ///   - source: the source.
    ///   - seat: its last index in the registration table.
    ///   - hasBegun: whether it has already left the ready list.
    ///   - run: the run.
    ///   - condition: the run's condition.
    /// - Returns: whether it handled anything: false when it was handled or removed elsewhere meanwhile.
    func performReadySource(
        _ source: RunLoopSource, near seat: RegistrationIndex, hasBegun: Bool, _ run: inout LoopRun,
        while condition: () -> Bool
    ) -> Bool {
        if !hasBegun {
            guard state.withLock({ $0.takeForPerform(source, in: run.mode, near: seat) }) else { return false }
            performing.begin(source)
        }
        source.isRung.store(false, ordering: .sequentiallyConsistent)
        let outcome = RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION(source) {
            goesOn(with: source, near: seat, &run, while: condition)
        }
        performing.endLast()
        if outcome.isReady != false, source.isValid, outcome.isReady ?? source.routine.isReady() { source.ring() }
        return outcome.hasHandled
    }

    /// Whether the next pass would find nothing but the source, which has more: then that pass begins here.
    private func goesOn(
        with source: RunLoopSource, near seat: RegistrationIndex, _ run: inout LoopRun, while condition: () -> Bool
    ) -> Bool {
        if run.polls || run.returnsAfterSource || isInstrumented.load(ordering: .relaxed) { return false }
        if run.isConditional && !condition() { return false }
        // A run without a limit needs no exact time. Whether descriptors are due to be polled is decided by a clock
        // that lags by up to one timer interrupt, and is much cheaper. The beginning of that interval is exact:
        // otherwise the next wait would find it over.
        let now = run.deadline == .distantFuture && run.nextLook != nil ? MonotonicInstant.coarse : .now
        if run.deadline <= now || run.isLookDue(at: now) { return false }
        if !state.holds(.onlySource) {
            let goesOn = state.find(.onlySource) { state in
                let goesOn = state.goesOn(with: source, in: run.mode, near: seat)
                return (goesOn && state.modes[run.mode].timers.isEmpty, goesOn)
            }
            if !goesOn { return false }
            source.isRung.store(false, ordering: .sequentiallyConsistent)
        }
        run.eventsSinceLook += 1
        run.hasJustFiredTimers = false
        counts.didTurn()
        return true
    }
}
