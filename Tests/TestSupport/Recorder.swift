// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization
package import Testing

/// A list to which threads of a test append what they saw, in the order in which they did.
package final class Recorder<Element: Sendable>: Sendable {
    private let list = Mutex<[Element]>([])
    private let counter: Counter  // guards itself; never ahead of the list

    /// Makes an empty list.
    ///
    /// - Parameter name: what is recorded, as it shall be called when too little of it comes.
    package init(_ name: String = "a recorder") {
        counter = Counter(name)
    }

    /// Appends an element.
    package func append(_ element: Element) {
        list.withLock { $0.append(element) }
        counter.increment()
    }

    /// What was appended so far.
    package var elements: [Element] { list.withLock { $0 } }

    /// How much was appended so far.
    package var count: Int { list.withLock { $0.count } }

    /// Takes everything out; `waitUntilCount` goes on counting from the start of the recorder's life.
    package func takeAll() -> [Element] {
        list.withLock { list in
            defer { list = [] }
            return list
        }
    }

    /// Blocks until `count` elements were appended. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: what is in the list.
    @discardableResult
    package func waitUntilCount(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) -> [Element] {
        counter.waitUntilCount(count, sourceLocation: sourceLocation)
        return elements
    }

    /// Suspends until `count` elements were appended. Records an issue when the watchdog ends the wait.
    ///
    /// - Returns: what is in the list.
    @discardableResult
    package func waitUntilCount(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async -> [Element] {
        await counter.waitUntilCount(count, sourceLocation: sourceLocation)
        return elements
    }
}
