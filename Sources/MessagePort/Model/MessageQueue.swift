// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Messages in the order of their arrival. The oldest may be leased to a handler's thread as a batch, which the thread
/// dequeues without the lock that guards the queue. They count until they are dequeued, and any other consumer of the
/// queue revokes the batch first.
///
/// All waiting messages are leased at once, and new ones go to other memory: so a batch costs the same for many
/// messages as for one, and senders and the consumer write to different memory.
struct MessageQueue: ~Copyable {
    /// The messages that came last: all, when none were leased.
    private var row = MessageBuffer()
    /// An upper bound of the count in `front`: some may have been dequeued without the lock.
    private var frontCountAtMost: Int32 = 0  // here it takes no room
    /// The messages before them: a batch that is open, or was.
    private var front: MessageBatch?
    private var isClaimed = false
    /// How many messages are dequeued before the next batch: there is another consumer, or the last batch was no use.
    private var takesBeforeClaim: UInt8 = 0

    private static let takesAfterReclaim: UInt8 = 64

    private var frontCount: Int { frontCountAtMost == 0 ? 0 : front?.count ?? 0 }
    var count: Int { row.count + frontCount }
    var isEmpty: Bool { row.isEmpty && frontCount == 0 }

    /// Whether there are fewer messages than `limit`; usually without reading memory that another thread writes.
    mutating func isShorter(than limit: Int) -> Bool {
        if Int(frontCountAtMost) + row.count < limit { return true }
        recount()
        return Int(frontCountAtMost) + row.count < limit
    }

    private mutating func recount() { frontCountAtMost = Int32(frontCount) }

    mutating func append(_ message: consuming MachMessage) {
        row.append(message)
    }

    /// Appends messages, and empties their buffer.
    mutating func append(allOf messages: inout MessageBuffer) {
        row.append(allOf: &messages)
    }

    mutating func popFirst() -> MachMessage? {
        reclaim()
        if takesBeforeClaim > 0 { takesBeforeClaim -= 1 }
        if frontCountAtMost == 0 { return row.popFirst() }
        frontCountAtMost -= 1
        return front?.withRow { $0.popFirst() }
    }

    /// Removes the oldest message of a kind; those before it move up, so the cost grows with their number.
    mutating func removeFirst(where isWanted: (MachMessage) -> Bool) -> MachMessage? {
        reclaim()
        if frontCountAtMost > 0, let found = front?.withRow({ $0.removeFirst(where: isWanted) }) {
            frontCountAtMost -= 1
            return found
        }
        return row.removeFirst(where: isWanted)
    }

    mutating func removeAll() -> [MachMessage] {
        reclaim()
        var messages: [MachMessage] = []
        messages.reserveCapacity(count)
        while let message = popFirst() { messages.append(message) }
        row = MessageBuffer()
        front = nil
        return messages
    }

    /// Leases the oldest messages to a handler's thread.
    ///
    /// - Parameter limit: the most messages.
    /// - Returns: the batch; nil when there is no message, a batch is open, or batches are suspended for a while.
    mutating func makeClaim(atMost limit: Int = .max) -> MessageBatch? {
        if isClaimed || takesBeforeClaim > 0 || frontCountAtMost == 0 && row.isEmpty { return nil }
        if frontCountAtMost == 0 { moveToFront() }
        front?.open(atMost: limit)
        isClaimed = true
        return front
    }

    /// Swaps the messages with the memory of those before them.
    private mutating func moveToFront() {
        frontCountAtMost = Int32(row.count)
        if let front {
            front.withRow { swap(&$0, &row) }
        } else {
            var moved = MessageBuffer()
            swap(&moved, &row)
            front = MessageBatch(moved)
        }
    }

    /// Revokes the batch, because another consumer needs the queue: nothing is leased for a while.
    mutating func reclaim() {
        guard isClaimed, let claim = front else { return }
        let claimedCount = claim.close()
        isClaimed = false
        frontCountAtMost = Int32(claim.count)
        // The remaining messages are moved: that must not happen for each message.
        if claimedCount > 0 || frontCountAtMost > 0 { takesBeforeClaim = Self.takesAfterReclaim }
        front = frontCountAtMost == 0 ? nil : MessageBatch(claim.withRow { $0.moveAll() })
    }

    /// Ends the batch when its handler is done. If the handler has dequeued nothing from it, batches are no use for a
    /// while.
    mutating func endClaim() {
        guard isClaimed, let front else { return }
        isClaimed = false
        if front.end() == 0 { takesBeforeClaim = Self.takesAfterReclaim }
        recount()
    }
}
