// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A list that mostly has no or one element: the first lies in place, and takes no memory of its own.
struct ShortList<Element: Sendable>: Sendable {
    private var head: Element?
    private var tail: [Element] = []

    init() {}

    mutating func append(_ element: Element) {
        if head == nil { head = element } else { tail.append(element) }
    }

    mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
        tail.removeAll(where: shouldBeRemoved)
        if let head, shouldBeRemoved(head) { self.head = tail.isEmpty ? nil : tail.removeFirst() }
    }
}

extension ShortList: RandomAccessCollection {
    var startIndex: Int { 0 }
    var endIndex: Int { head == nil ? 0 : 1 + tail.count }

    subscript(position: Int) -> Element {
        if position == 0, let head { return head }
        return tail[position - 1]
    }
}

extension ShortList: ExpressibleByArrayLiteral {
    init(arrayLiteral elements: Element...) {
        for element in elements { append(element) }
    }
}
