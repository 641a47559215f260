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
        var looks = 0
        var emptyLooks = 0
        var mustEnd = false
    }

    private let state = Mutex(State())

    /// How often it woke.
    var looks: Int { state.withLock { $0.looks } }
    /// How many of these times it found nothing.
    var emptyLooks: Int { state.withLock { $0.emptyLooks } }

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
                state.looks += 1
                if state.actions.isEmpty { state.emptyLooks += 1 }
                return state.actions
            }
            for action in actions { action() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
