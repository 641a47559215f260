// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension RunLoopTimer {
    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode) {
        state.withLock {
            if !$0.homes.add(.timer(self), to: loop, mode).isEmpty { arm($0) }
        }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        state.withLock { _ = $0.homes.remove(id, from: loop, mode) }
    }

    /// Arms the timer in modes that it has entered.
    func armAgain() {
        state.withLock { arm($0) }
    }

    /// Begins a firing: no other loop and no nested run fires the timer until it ends.
    ///
    /// - Returns: false when it must not fire: it is invalid, firing, or not due any more.
    func beginFiring(at now: MonotonicInstant) -> Bool {
        state.withLock { state in
            guard state.homes.isValid, !state.isFiring, state.schedule.fireDate <= now else { return false }
            state.isFiring = true
            state.wasRescheduled = false
            for loop in state.homes.loops { loop.disarm(id) }
            return true
        }
    }

    /// Ends a firing: a one-shot timer becomes invalid, a repeating one gets its next date.
    func endFiring() {
        if interval == nil { invalidate() }
        state.withLock { state in
            state.isFiring = false
            if !state.wasRescheduled { state.schedule.advance(past: .now) }
            arm(state)
        }
    }

    func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            arm(state)
        }
    }

    /// Passes the timer's dates to its loops. The caller holds the timer's lock.
    private func arm(_ state: State) {
        if state.isFiring { return }
        for loop in state.homes.loops { loop.arm(id, state.schedule) }
    }
}

extension ThreadRunLoop {
    /// Arms a timer in every mode that it is in, and wakes the loop when it must be awake earlier than planned.
    func arm(_ id: ItemID, _ schedule: TimerSchedule) {
        let mustWake = state.withLock { state in
            var mustWake = false
            for index in state.places(of: id) {
                let wakeDate = state.modes[index].timers.wakeDate ?? .distantFuture
                state.modes[index].timers.arm(id, schedule)
                if state.isRunning(in: index), schedule.latestDate < wakeDate { mustWake = true }
            }
            return mustWake
        }
        if mustWake { doorbell.endWait() }
    }

    /// Removes a firing timer from the queues; it stays a member of its modes.
    func disarm(_ id: ItemID) {
        state.withLock { state in
            for index in state.places(of: id) { state.modes[index].timers.disarm(id) }
        }
    }

    /// Fires all timers of a mode that are due.
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
}
