// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A list that mostly has no or one element: the first lies in place, and takes no memory of its own.
package struct ShortList<Element: Sendable>: Sendable {
    private var head: Element?
    private var tail: [Element] = []

    package init() {}

    package mutating func append(_ element: Element) {
        if head == nil { head = element } else { tail.append(element) }
    }

    package mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
        tail.removeAll(where: shouldBeRemoved)
        if let head, shouldBeRemoved(head) { self.head = tail.isEmpty ? nil : tail.removeFirst() }
    }
}

extension ShortList: RandomAccessCollection {
    package var startIndex: Int { 0 }
    package var endIndex: Int { head == nil ? 0 : 1 + tail.count }

    package subscript(position: Int) -> Element {
        if position == 0, let head { return head }
        return tail[position - 1]
    }
}

extension ShortList: ExpressibleByArrayLiteral {
    package init(arrayLiteral elements: Element...) {
        for element in elements { append(element) }
    }
}
