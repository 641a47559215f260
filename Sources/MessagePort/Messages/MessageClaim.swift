// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

// @unchecked: each slot belongs to whoever has drawn its number from `position`: the thread that takes messages, or the one
// that has closed the claim and has all slots from there on. `count` and the slots are filled under the queue's lock, by the
// thread that takes messages, when nothing is left in them.
/// The oldest messages of a queue, which the thread of a handler takes one after the other without the queue's lock.
@safe final class MessageClaim: @unchecked Sendable {
    static let capacity = 32
    private static let closed = Int.max / 2

    private let slots = UnsafeMutablePointer<MachMessage>.allocate(capacity: MessageClaim.capacity)
    private let position = Atomic<Int>(0)
    /// How many messages it had at first.
    private(set) var count = 0

    deinit {
        let first = position.load(ordering: .acquiring)
        if first < count { unsafe (slots + first).deinitialize(count: count - first) }
        unsafe slots.deallocate()
    }

    /// How many messages are not taken. The caller has the queue's lock, or takes them.
    var remaining: Int { max(0, count - position.load(ordering: .acquiring)) }

    /// Takes the next message; only the thread that has the claim may.
    ///
    /// - Returns: nil when there is none, or the queue has taken the rest back.
    func next() -> MachMessage? {
        let index = position.add(1, ordering: .acquiringAndReleasing).oldValue
        if index >= count { return nil }
        unsafe slots[index].noteTaken()
        return unsafe (slots + index).move()
    }

    /// Fills the claim, which has none left, with the oldest messages.
    func fill(from ring: inout Ring<MachMessage>, atMost limit: Int = .max) {
        let most = min(Self.capacity, limit)
        count = 0
        while count < most, let message = ring.popFirst() {
            unsafe (slots + count).initialize(to: message)
            count += 1
        }
        position.store(0, ordering: .releasing)
    }

    /// Puts what is not taken before all other messages. Nothing more is taken then.
    ///
    /// - Returns: how many there were.
    func close(into ring: inout Ring<MachMessage>) -> Int {
        let first = position.exchange(Self.closed, ordering: .acquiringAndReleasing)
        guard first < count else { return 0 }
        for index in (first..<count).reversed() { unsafe ring.prepend((slots + index).move()) }
        return count - first
    }
}
