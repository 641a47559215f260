// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Messages in the order of their arrival: a ring that grows by doubling and never shrinks below what it held.
struct MessageQueue {
    private var slots: [MachMessage?] = []
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ message: MachMessage) {
        if count == slots.count { grow() }
        slots[(head + count) & (slots.count - 1)] = message
        count += 1
    }

    mutating func popFirst() -> MachMessage? {
        guard count > 0 else { return nil }
        let message = slots[head].take()
        head = (head + 1) & (slots.count - 1)
        count -= 1
        return message
    }

    /// Removes the oldest message of a kind; those before it move up, so this takes as long as there are of those.
    mutating func removeFirst(where isWanted: (MachMessage) -> Bool) -> MachMessage? {
        let found = (0..<count).first { slots[(head + $0) & (slots.count - 1)].map(isWanted) ?? false }
        guard let found else { return nil }
        // The place of each is taken by the one before it; the first place becomes free.
        for offset in (0..<found).reversed() {
            slots.swapAt((head + offset) & (slots.count - 1), (head + offset + 1) & (slots.count - 1))
        }
        return popFirst()
    }

    mutating func removeAll() -> [MachMessage] {
        var messages: [MachMessage] = []
        messages.reserveCapacity(count)
        while let message = popFirst() { messages.append(message) }
        slots = []
        head = 0
        return messages
    }

    /// Doubles the ring; its size stays a power of two.
    private mutating func grow() {
        let ordered = (0..<count).map { slots[(head + $0) & (slots.count - 1)] }
        slots = ordered + Array(repeating: nil, count: max(4, count))
        head = 0
    }
}
