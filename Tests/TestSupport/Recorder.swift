// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization
package import Testing

/// A list to which threads of a test append what they saw, in order.
package final class Recorder<Element: Sendable>: Sendable {
    private let list = Mutex<[Element]>([])
    private let counter: Counter  // guards itself; never ahead of the list

    /// Makes an empty list.
    ///
    /// - Parameter name: what is recorded, for the issue when too little of it comes.
    package init(_ name: String = "a recorder") {
        counter = Counter(name)
    }

    /// Appends an element.
    package func append(_ element: Element) {
        list.withLock { $0.append(element) }
        counter.increment()
    }

    /// The elements appended so far.
    package var elements: [Element] { list.withLock { $0 } }

    /// The number of elements appended so far.
    package var count: Int { list.withLock { $0.count } }

    /// Removes and returns all elements; `waitUntilCount` goes on counting from the recorder's creation.
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
