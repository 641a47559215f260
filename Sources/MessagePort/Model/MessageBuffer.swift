// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// @unchecked: the memory belongs to the value, which is in one property and is guarded by what guards that.
/// A FIFO of messages in one piece of memory.
@safe struct MessageBuffer: ~Copyable, @unchecked Sendable {
    private static let smallest = 2
    /// A buffer with more room is not exchanged: it would stay with a queue that has few messages.
    private static let mostExchanged = 64

    private var slots: UnsafeMutablePointer<MachMessage>?
    // Four bytes each: every port has a buffer.
    private var capacity: Int32 = 0
    private var first: Int32 = 0
    private var end: Int32 = 0

    init() { unsafe slots = nil }

    deinit {
        guard let slots = unsafe slots else { return }
        unsafe (slots + Int(first)).deinitialize(count: count)
        unsafe slots.deallocate()
    }

    var isEmpty: Bool { first == end }
    var count: Int { Int(end - first) }

    mutating func append(_ message: consuming MachMessage) {
        if end == capacity { makeRoom(for: 1) }
        if let slots = unsafe slots { unsafe (slots + Int(end)).initialize(to: message) }
        end += 1
    }

    /// Appends the messages of another buffer, which is empty then. When there are none here, the two buffers are
    /// usually swapped: that costs the same for many messages as for one.
    mutating func append(allOf other: inout MessageBuffer) {
        if isEmpty, capacity <= max(other.capacity, Int32(Self.mostExchanged)) { return swap(&self, &other) }
        let count = other.count
        if Int(capacity - end) < count { makeRoom(for: count) }
        if let slots = unsafe slots, let source = unsafe other.firstSlot {
            unsafe (slots + Int(end)).moveInitialize(from: source, count: count)
        }
        end += Int32(count)
        (other.first, other.end) = (0, 0)
    }

    /// Moves the messages to the beginning when at least half of the memory is free and that suffices, otherwise into
    /// twice as much, or more.
    private mutating func makeRoom(for more: Int) {
        let capacity = Int(capacity)
        if count <= capacity / 2, count + more <= capacity, let slots = unsafe slots {
            unsafe slots.moveInitialize(from: slots + Int(first), count: count)
        } else {
            moveMessages(intoRoomFor: max(Self.smallest, capacity * 2, count + more))
        }
        (first, end) = (0, end - first)
    }

    private mutating func moveMessages(intoRoomFor capacity: Int) {
        let new = UnsafeMutablePointer<MachMessage>.allocate(capacity: capacity)
        if let slots = unsafe slots {
            unsafe new.moveInitialize(from: slots + Int(first), count: count)
            unsafe slots.deallocate()
        }
        unsafe slots = new
        self.capacity = Int32(capacity)
    }

    mutating func popFirst() -> MachMessage? {
        guard first < end, let slots = unsafe slots else { return nil }
        let message = unsafe (slots + Int(first)).move()
        dropFirst(1)
        return message
    }

    /// Removes the oldest message of a kind; those before it move up, so the cost grows with their number.
    mutating func removeFirst(where isWanted: (MachMessage) -> Bool) -> MachMessage? {
        guard let slots = unsafe slots,
            let found = (first..<end).first(where: { unsafe isWanted(slots[Int($0)]) })
        else { return nil }
        let message = unsafe (slots + Int(found)).move()
        unsafe (slots + Int(first) + 1).moveInitialize(from: slots + Int(first), count: Int(found - first))
        dropFirst(1)
        return message
    }

    // MARK: For a message batch

    /// The messages in place.
    var firstSlot: UnsafeMutablePointer<MachMessage>? { unsafe slots.map { unsafe $0 + Int(first) } }

    /// The oldest messages have been moved out of their slots.
    mutating func dropFirst(_ count: Int) {
        first += Int32(count)
        if first == end { (first, end) = (0, 0) }
    }

    /// Moves all messages into memory of their own.
    ///
    /// - Returns: the buffer in which they are now.
    mutating func moveAll() -> MessageBuffer {
        var row = MessageBuffer()
        if let source = unsafe firstSlot, count > 0 {
            row.moveMessages(intoRoomFor: count)
            if let slots = unsafe row.slots { unsafe slots.moveInitialize(from: source, count: count) }
            row.end = end - first
        }
        (first, end) = (0, 0)
        return row
    }
}
