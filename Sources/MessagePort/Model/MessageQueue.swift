// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Messages in the order of their arrival. The oldest may be leased to a handler's thread as a batch, which the thread
/// dequeues without the lock that guards the queue. They count until they are dequeued, and any other consumer of the
/// queue revokes the batch first.
///
/// All waiting messages are leased at once, and new ones go to other memory: so a batch costs the same for many
/// messages as for one, and senders and the consumer write to different memory.
struct MessageQueue: ~Copyable {
    /// The messages that came last: all, when none were leased.
    private var back = MessageBuffer()
    /// An upper bound of the count in `front`: some may have been dequeued without the lock.
    private var frontCountAtMost: Int32 = 0  // here it costs no memory
    /// The messages before them: a batch that is open, or was.
    private var front: MessageBatch?
    private var isLeased = false
    /// How many messages are dequeued before the next batch: there is another consumer, or the last batch was useless.
    private var dequeuesBeforeLease: UInt8 = 0

    private var frontCount: Int { frontCountAtMost == 0 ? 0 : front?.count ?? 0 }
    var count: Int { back.count + frontCount }
    var isEmpty: Bool { back.isEmpty && frontCount == 0 }

    /// Whether there are fewer messages than `limit`; usually without reading memory that another thread writes.
    mutating func isShorter(than limit: Int) -> Bool {
        if Int(frontCountAtMost) + back.count < limit { return true }
        recount()
        return Int(frontCountAtMost) + back.count < limit
    }

    private mutating func recount() { frontCountAtMost = Int32(frontCount) }

    mutating func append(_ message: consuming MachMessage) {
        back.append(message)
    }

    mutating func append(allOf messages: inout MessageBuffer) {
        back.append(allOf: &messages)
    }

    mutating func popFirst() -> MachMessage? {
        revokeLease()
        if dequeuesBeforeLease > 0 { dequeuesBeforeLease -= 1 }
        if frontCountAtMost == 0 { return back.popFirst() }
        frontCountAtMost -= 1
        return front?.withMessages { $0.popFirst() }
    }

    mutating func removeFirst(where isWanted: (MachMessage) -> Bool) -> MachMessage? {
        revokeLease()
        if frontCountAtMost > 0, let found = front?.withMessages({ $0.removeFirst(where: isWanted) }) {
            frontCountAtMost -= 1
            return found
        }
        return back.removeFirst(where: isWanted)
    }

    mutating func removeAll() -> [MachMessage] {
        revokeLease()
        var messages: [MachMessage] = []
        messages.reserveCapacity(count)
        while let message = popFirst() { messages.append(message) }
        back = MessageBuffer()
        front = nil
        return messages
    }

    /// Leases the oldest messages to a handler's thread.
    ///
    /// - Returns: nil when there is no message, a batch is open, or batches are suspended for a while.
    mutating func leaseBatch(atMost limit: Int = .max) -> MessageBatch? {
        if isLeased || dequeuesBeforeLease > 0 || frontCountAtMost == 0 && back.isEmpty { return nil }
        if frontCountAtMost == 0 { moveToFront() }
        front?.open(atMost: limit)
        isLeased = true
        return front
    }

    /// Swaps the messages with the memory of those before them.
    private mutating func moveToFront() {
        frontCountAtMost = Int32(back.count)
        if let front {
            front.withMessages { swap(&$0, &back) }
        } else {
            var moved = MessageBuffer()
            swap(&moved, &back)
            front = MessageBatch(moved)
        }
    }

    /// Revokes the batch, because another consumer needs the queue: nothing is leased for a while.
    mutating func revokeLease() {
        guard isLeased, let batch = front else { return }
        let leasedCount = batch.close()
        isLeased = false
        frontCountAtMost = Int32(batch.count)
        // The remaining messages are moved: that must not happen for each message.
        if leasedCount > 0 || frontCountAtMost > 0 { dequeuesBeforeLease = Tuning.dequeuesAfterRevocation }
        front = frontCountAtMost == 0 ? nil : MessageBatch(batch.withMessages { $0.moveAll() })
    }

    /// Ends the batch when its handler is done. If the handler has dequeued nothing from it, no batch is leased for a
    /// while.
    mutating func endLease() {
        guard isLeased, let front else { return }
        isLeased = false
        if front.end() == 0 { dequeuesBeforeLease = Tuning.dequeuesAfterRevocation }
        recount()
    }
}

// @unchecked: the memory belongs to the value, which is in one property and is guarded by what guards that.
/// A FIFO of messages in one piece of memory.
@safe struct MessageBuffer: ~Copyable, @unchecked Sendable {
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
        if isEmpty, capacity <= max(other.capacity, Int32(Tuning.mostExchanged)) { return swap(&self, &other) }
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
            moveMessages(intoRoomFor: max(Tuning.smallestBuffer, capacity * 2, count + more))
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
        var moved = MessageBuffer()
        if let source = unsafe firstSlot, count > 0 {
            moved.moveMessages(intoRoomFor: count)
            if let slots = unsafe moved.slots { unsafe slots.moveInitialize(from: source, count: count) }
            moved.end = end - first
        }
        (first, end) = (0, 0)
        return moved
    }
}

// @unchecked: while it is closed, the holder of the queue's lock owns all of it. While it is open, a slot of the lease
// belongs to the thread that has drawn its number from `position`: the handler's thread, or the thread that has closed
// the lease and owns all slots from there on, which the former only reads (`fetchAhead`). All else is written under the
// lock while it is closed.
/// The oldest messages of a queue, leased to the thread of a handler, which dequeues them one after the other without
/// the queue's lock.
@safe final class MessageBatch: @unchecked Sendable {
    private static let closed = Int.max / 2

    private let position = Atomic<Int>(closed)
    private var slots: UnsafeMutablePointer<MachMessage>?
    private var leasedCount = 0
    // Unchecked: guarded as said above. A check costs as much as the work.
    @exclusivity(unchecked) private var messages: MessageBuffer

    init(_ messages: consuming MessageBuffer) {
        unsafe slots = nil
        unsafe self.messages = messages
    }

    deinit { _ = end() }

    private var dequeuedCount: Int {
        let next = position.load(ordering: .acquiring)
        return next >= Self.closed ? 0 : min(next, leasedCount)
    }

    /// How many messages, leased or not, are not dequeued yet.
    var count: Int { unsafe messages.count - dequeuedCount }

    /// How many of the leased ones are not dequeued yet.
    var remaining: Int { max(0, leasedCount - position.load(ordering: .acquiring)) }

    /// Leases the oldest messages to the thread of a handler.
    func open(atMost limit: Int) {
        leasedCount = unsafe min(limit, messages.count)
        unsafe slots = messages.firstSlot
        position.store(0, ordering: .releasing)
    }

    /// Dequeues the next message; only the thread that has the lease may.
    ///
    /// - Returns: nil when there is none, or the queue has revoked the rest.
    func next() -> MachMessage? {
        let index = position.add(1, ordering: .acquiringAndReleasing).oldValue
        guard index < leasedCount, let slots = unsafe slots else { return nil }
        // Not further ahead: batches are of a few messages.
        if index + 2 < leasedCount { unsafe Self.fetchAhead(slots + (index + 2)) }
        unsafe slots[index].noteDequeued()
        return unsafe (slots + index).move()
    }

    private static let partsOffset = MemoryLayout<MachMessage>.offset(of: \.parts) ?? 0

    /// Prefetches the bytes of a message, which another thread has written and this one will read. The message may be
    /// revoked meanwhile: its memory, which stays, is read as a word, and a prefetch of whatever that points to is
    /// harmless.
    private static func fetchAhead(_ slot: UnsafePointer<MachMessage>) {
        let word = unsafe UnsafeRawPointer(slot).load(fromByteOffset: partsOffset, as: UInt.self)
        unsafe sysPrefetch(UnsafeRawPointer(bitPattern: word))
    }

    /// Ends the lease; called by the thread that has it.
    ///
    /// - Returns: how many messages were dequeued.
    func end() -> Int {
        let count = dequeuedCount
        position.store(Self.closed, ordering: .releasing)
        unsafe messages.dropFirst(count)
        return count
    }

    /// Revokes the lease. The thread that has it may still be moving a message out: so the batch is not opened again.
    ///
    /// - Returns: how many of the leased messages were not dequeued.
    func close() -> Int {
        let count = min(position.exchange(Self.closed, ordering: .acquiringAndReleasing), leasedCount)
        unsafe messages.dropFirst(count)
        return leasedCount - count
    }

    // MARK: While it is closed

    func withMessages<Result: ~Copyable>(_ body: (inout MessageBuffer) -> Result) -> Result { unsafe body(&messages) }
}
