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
    ///   - hasBegun: it is off the ready list already.
    ///   - run: the run.
    ///   - condition: the run's.
    /// - Returns: whether it handled anything: not when something else has handled it or taken it out meanwhile.
    func performReadySource(
        _ source: RunLoopSource, hasBegun: Bool, _ run: inout LoopRun, while condition: () -> Bool
    ) -> Bool {
        guard hasBegun || state.withLock({ $0.beginPerform(source.id, in: run.mode) }) else { return false }
        source.isRung.store(false, ordering: .sequentiallyConsistent)
        let outcome = RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION(source) {
            goesOn(with: source, &run, while: condition)
        }
        state.withLock { _ = $0.performing.popLast() }
        if outcome.isReady != false, source.isValid, outcome.isReady ?? source.routine.isReady() { source.ring() }
        return outcome.hasHandled
    }

    /// Whether nothing but the source, which has more, is there for the next turn: then that one begins here.
    private func goesOn(with source: RunLoopSource, _ run: inout LoopRun, while condition: () -> Bool) -> Bool {
        if run.polls || run.returnsAfterSource || isInstrumented.load(ordering: .relaxed) { return false }
        if run.isConditional && !condition() { return false }
        // Who has no limit needs no exact time: how long descriptors have not been looked at, a clock tells that lags
        // by up to one timer interrupt, and is much cheaper. When that begins is exact: else the next wait would find
        // it over.
        let now = run.deadline == .distantFuture && run.nextLook != nil ? MonotonicInstant.coarse : .now
        if run.deadline <= now || run.isLookDue(at: now) { return false }
        if !state.remainsSettled {
            let goesOn = state.settle { state in
                let goesOn = state.goesOn(with: source.id, in: run.mode)
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

extension RunLoopState {
    mutating func beginPerform(_ id: ItemID, in mode: Int) -> Bool {
        guard isMember(id, of: mode), modes[mode].ready.takeForPerform(id) else { return false }
        performing.append(id)
        return true
    }

    /// Whether a turn in the mode would find nothing in its first steps: no observer, no block, no signalled source.
    func isQuiet(_ mode: Int) -> Bool {
        blocks.isEmpty && modes[mode].signalled.isEmpty && modes[mode].observers.isEmpty
    }

    /// Whether a turn can end without another look: no block waits, and a run that minds was not stopped and has what
    /// to wait for.
    func isPlain(_ run: LoopRun) -> Bool {
        blocks.isEmpty && (run.isConditional || !isStopped && !isEmpty(run.mode))
    }

    /// Whether a port-based source that is being performed, and has more, is all that the next turn would find. If it
    /// is on the ready list, it is taken off.
    fileprivate mutating func goesOn(with id: ItemID, in mode: Int) -> Bool {
        if isStopped || !isQuiet(mode) || modes[mode].timers.isDue(at: .now) || !isMember(id, of: mode) { return false }
        guard let first = modes[mode].ready.first else { return true }
        return first == id && modes[mode].ready.takeForPerform(id)
    }
}
