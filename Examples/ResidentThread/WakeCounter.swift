// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// Counts how often a loop woke, and how many of these times it woke for nothing.
final class WakeCounter: Sendable {
    private struct State {
        var wakes = 0
        var emptyWakes = 0
        var hadWork = false
    }

    private let state = Mutex(State())

    var wakes: Int { state.withLock { $0.wakes } }
    var emptyWakes: Int { state.withLock { $0.emptyWakes } }

    func watch(_ loop: ThreadRunLoop) {
        let activities: RunLoopActivity = [.afterWaiting, .beforeWaiting]
        loop.add(
            RunLoopObserver(name: "wake-ups", activities: activities) { [self] _, activity in
                if activity == .afterWaiting { didWake() } else { willSleep() }
            })
    }

    /// Called by a task: the wake-up was not for nothing.
    func noteWork() {
        state.withLock { $0.hadWork = true }
    }

    private func didWake() {
        state.withLock { state in
            state.wakes += 1
            state.hadWork = false
        }
    }

    private func willSleep() {
        state.withLock { state in
            if state.wakes > 0, !state.hadWork { state.emptyWakes += 1 }
        }
    }
}
