// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A double-ended queue: a ring buffer that grows by doubling, and shrinks only when all elements are removed at once.
struct Deque<Element: Sendable>: Sendable {
    private var slots: [Element?] = []
    // Four bytes each: every connection has a deque.
    private var storedHead: UInt32 = 0
    private var storedCount: UInt32 = 0

    var isEmpty: Bool { storedCount == 0 }

    private(set) var count: Int {
        get { Int(storedCount) }
        set { storedCount = UInt32(newValue) }
    }

    private var head: Int {
        get { Int(storedHead) }
        set { storedHead = UInt32(newValue) }
    }

    var first: Element? { count == 0 ? nil : slots[head] }

    mutating func append(_ element: consuming Element) {
        if count == slots.count { grow() }
        slots[(head + count) & (slots.count - 1)] = element
        count += 1
    }

    mutating func prepend(_ element: consuming Element) {
        if count == slots.count { grow() }
        head = (head + slots.count - 1) & (slots.count - 1)
        slots[head] = element
        count += 1
    }

    mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = slots[head].take()
        head = (head + 1) & (slots.count - 1)
        count -= 1
        return element
    }

    mutating func removeAll() -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(count)
        while let element = popFirst() { elements.append(element) }
        slots = []
        head = 0
        return elements
    }

    /// Doubles the buffer; its size stays a power of two.
    private mutating func grow() {
        let ordered = (0..<count).map { slots[(head + $0) & (slots.count - 1)] }
        slots = ordered + Array(repeating: nil, count: max(4, count))
        head = 0
    }
}
