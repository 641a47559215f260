// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A task that waits for a message. It is woken once, and then checks for one. The wake-up hands over nothing, so
/// nothing is lost when the task was cancelled meanwhile.
package final class WaitingTask: Sendable {
    private struct State: Sendable {
        var isWoken = false
        var continuation: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Wakes it, now or when it comes to wait.
    package func wake() {
        let continuation = state.withLock { state in
            state.isWoken = true
            return state.continuation.take()
        }
        continuation?.resume()
    }

    /// Suspends the task until it is woken.
    package func wait() async {
        await withCheckedContinuation { continuation in
            let isWoken = state.withLock { state in
                if !state.isWoken { state.continuation = continuation }
                return state.isWoken
            }
            if isWoken { continuation.resume() }
        }
    }
}
