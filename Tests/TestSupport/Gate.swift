// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import Testing

/// A one-shot event between threads of a test.
package final class Gate: Sendable {
    private let name: String  // immutable
    private let event = ThreadEvent()  // guards itself

    /// Makes a closed gate.
    ///
    /// - Parameter name: what the gate stands for, for the issue when it is not opened.
    package init(_ name: String = "a gate") {
        self.name = name
    }

    /// Opens the gate for every waiter, now and later.
    package func open() {
        event.set()
    }

    /// Whether the gate is open.
    package var isOpen: Bool { event.wait(until: .distantPast) }

    /// Blocks until the gate is open. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: whether the gate is open.
    @discardableResult
    package func wait(sourceLocation: SourceLocation = #_sourceLocation) -> Bool {
        Watchdog.wait(for: event, "no thread opened \(name)", sourceLocation: sourceLocation)
    }

    /// Suspends until the gate is open. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: whether the gate is open.
    @discardableResult
    package func wait(sourceLocation: SourceLocation = #_sourceLocation) async -> Bool {
        await offThePool { [self] in
            Watchdog.wait(for: event, "no thread opened \(name)", sourceLocation: sourceLocation)
        }
    }
}
