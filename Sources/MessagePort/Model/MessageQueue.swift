// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Messages in the order of their arrival. The oldest may be claimed by a handler's thread, which takes them without
/// the lock that guards the queue; they count as long as they are not taken, and whatever else takes messages gets them
/// back first.
///
/// All that wait are claimed at once, and what comes meanwhile lies elsewhere: so a claim costs the same for many messages
/// as for one, and who sends and who takes write to different memory.
struct MessageQueue: ~Copyable {
    /// The messages that came last: all, where nothing was claimed.
    private var row = MessageBuffer()
    /// How many lie in front, or more: some may have been taken without the lock.
    private var frontCountAtMost: Int32 = 0  // here it takes no room
    /// Those before them, and their claim, which is open, or was.
    private var front: MessageBatch?
    private var isClaimed = false
    /// So many messages are taken before the next claim: somebody else takes messages, too.
    private var takesBeforeClaim: UInt8 = 0

    private static let takesAfterReclaim: UInt8 = 64

    private var frontCount: Int { frontCountAtMost == 0 ? 0 : front?.count ?? 0 }
    var count: Int { row.count + frontCount }
    var isEmpty: Bool { row.isEmpty && frontCount == 0 }

    /// Whether there are fewer messages than that: mostly told without a look at what another thread takes.
    mutating func isShorter(than limit: Int) -> Bool {
        if Int(frontCountAtMost) + row.count < limit { return true }
        recount()
        return Int(frontCountAtMost) + row.count < limit
    }

    private mutating func recount() { frontCountAtMost = Int32(frontCount) }

    mutating func append(_ message: consuming MachMessage) {
        row.append(message)
    }

    /// Appends messages, of which none are left where they were.
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

    /// Removes the oldest message of a kind; those before it move up, so this takes as long as there are of those.
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

    /// Gives the oldest messages to a handler's thread.
    ///
    /// - Parameter limit: the most messages.
    /// - Returns: the claim; nil when it is not worth while, or others take messages.
    mutating func makeClaim(atMost limit: Int = .max) -> MessageBatch? {
        if isClaimed || takesBeforeClaim > 0 || frontCountAtMost == 0 && row.isEmpty { return nil }
        if frontCountAtMost == 0 { moveToFront() }
        front?.open(atMost: limit)
        isClaimed = true
        return front
    }

    /// Has the messages, and the memory of those before them, change places.
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

    /// Takes back what is claimed and not yet taken, because somebody else needs the queue: nothing is claimed for a
    /// while.
    mutating func reclaim() {
        guard isClaimed, let claim = front else { return }
        let claimedCount = claim.close()
        isClaimed = false
        frontCountAtMost = Int32(claim.count)
        // What is left is moved: that must not be done for each message.
        if claimedCount > 0 || frontCountAtMost > 0 { takesBeforeClaim = Self.takesAfterReclaim }
        front = frontCountAtMost == 0 ? nil : MessageBatch(claim.withRow { $0.moveAll() })
    }

    /// The handler that has the claim is over. If it has taken nothing, there is no use in claims for a while.
    mutating func endClaim() {
        guard isClaimed, let front else { return }
        isClaimed = false
        if front.end() == 0 { takesBeforeClaim = Self.takesAfterReclaim }
        recount()
    }
}
