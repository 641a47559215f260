// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a turn performs the port-based source that it has found, and when the next turns need not begin anew.
//
// A stream of messages to one port makes turns of which nothing but the source's callout could be seen: nobody observes
// the mode, and no block, signalled source, timer, stop or other ready source waits. One look at the loop's state tells;
// as long as nobody has been at it since, and the mode has no timer, it is not looked at again. Then the source is
// performed again in place of the other steps. Such a turn is counted like any other. It is never the one in which
// descriptors are due to be looked at, a run is to return, or an instrument looks on.

import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Performs a port-based source that was found ready, in this turn and in those that would find nothing else.
    ///
    /// - Parameters:
    ///   - source: the source.
    ///   - seat: where its seat was.
    ///   - hasBegun: it is off the ready list already.
    ///   - run: the run.
    ///   - condition: the run's.
    /// - Returns: whether it handled anything: not when something else has handled it or taken it out meanwhile.
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

    /// Whether nothing but the source, which has more, is there for the next turn: then that one begins here.
    private func goesOn(
        with source: RunLoopSource, near seat: RegistrationIndex, _ run: inout LoopRun, while condition: () -> Bool
    ) -> Bool {
        if run.polls || run.returnsAfterSource || isInstrumented.load(ordering: .relaxed) { return false }
        if run.isConditional && !condition() { return false }
        // Who has no limit needs no exact time: how long descriptors have not been looked at, a clock tells that lags
        // by up to one timer interrupt, and is much cheaper. When that begins is exact: else the next wait would find
        // it over.
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
