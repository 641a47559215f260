// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Synchronization

/// The thread that run loops replace: it sleeps, checks whether there is something to do, and sleeps again.
///
/// The documents call it LCThread, and let it sleep for 0.3 s. Here it sleeps for a hundredth of a second.
final class PollingThread: Sendable {
    private struct State {
        var actions: [@Sendable () -> Void] = []
        var polls = 0
        var emptyPolls = 0
        var mustEnd = false
    }

    private let state = Mutex(State())

    /// How often it polled.
    var polls: Int { state.withLock { $0.polls } }
    /// How many of these polls found nothing.
    var emptyPolls: Int { state.withLock { $0.emptyPolls } }

    func start() {
        Thread.detachNewThread { self.main() }
    }

    func queueAction(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.actions.append(action) }
    }

    func stop() {
        state.withLock { $0.mustEnd = true }
    }

    private func main() {
        while !state.withLock({ $0.mustEnd }) {
            let actions = state.withLock { state in
                defer { state.actions = [] }
                state.polls += 1
                if state.actions.isEmpty { state.emptyPolls += 1 }
                return state.actions
            }
            for action in actions { action() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
