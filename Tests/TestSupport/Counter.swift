// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
package import Testing

/// A count that threads of a test raise and wait for.
package final class Counter: Sendable {
    private struct State {
        var value = 0
        var waiters: [(count: Int, event: ThreadEvent)] = []
    }

    private let name: String  // immutable
    private let state = Mutex(State())

    /// Makes a count of zero.
    ///
    /// - Parameter name: what is counted, for the issue when the count is not reached.
    package init(_ name: String = "a counter") {
        self.name = name
    }

    /// How often it was raised.
    package var value: Int { state.withLock { $0.value } }

    /// Raises the count.
    ///
    /// - Returns: the new count.
    @discardableResult
    package func increment(by amount: Int = 1) -> Int {
        let (value, due) = state.withLock { state in
            state.value += amount
            let value = state.value
            let due = state.waiters.filter { $0.count <= value }
            state.waiters.removeAll { $0.count <= value }
            return (value, due)
        }
        for waiter in due { waiter.event.set() }
        return value
    }

    /// Blocks until the count is `count` or more. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: whether the count was reached.
    @discardableResult
    package func waitUntilCount(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) -> Bool {
        let event = state.withLock { state -> ThreadEvent? in
            if state.value >= count { return nil }
            let event = ThreadEvent()
            state.waiters.append((count, event))
            return event
        }
        guard let event else { return true }
        return Watchdog.wait(
            for: event, "\(name) came to \(value) of \(count)", sourceLocation: sourceLocation)
    }

    /// Suspends until the count is `count` or more. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: whether the count was reached.
    @discardableResult
    package func waitUntilCount(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async -> Bool {
        if value >= count { return true }
        return await offThePool { [self] in waitUntilCount(count, sourceLocation: sourceLocation) }
    }
}

/// Counts the end of its life.
package final class LifeProbe: Sendable {
    private let ended: Counter

    /// Makes an object whose release the counter counts.
    package init(_ ended: Counter) {
        self.ended = ended
    }

    deinit {
        ended.increment()
    }
}
