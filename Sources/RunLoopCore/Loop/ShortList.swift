// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A list that mostly has no or one element: the first lies in place, and takes no memory of its own.
@frozen package struct ShortList<Element: Sendable>: Sendable {
    @usableFromInline var head: Element?
    @usableFromInline var tail: [Element] = []

    @inlinable package init() {}

    @inlinable package mutating func append(_ element: Element) {
        if head == nil { head = element } else { tail.append(element) }
    }

    @inlinable package mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
        tail.removeAll(where: shouldBeRemoved)
        if let head, shouldBeRemoved(head) { self.head = tail.isEmpty ? nil : tail.removeFirst() }
    }
}

extension ShortList: RandomAccessCollection {
    @inlinable package var startIndex: Int { 0 }
    @inlinable package var endIndex: Int { head == nil ? 0 : 1 + tail.count }

    @inlinable package subscript(position: Int) -> Element {
        if position == 0, let head { return head }
        return tail[position - 1]
    }
}

extension ShortList: ExpressibleByArrayLiteral {
    @inlinable package init(arrayLiteral elements: Element...) {
        for element in elements { append(element) }
    }
}
