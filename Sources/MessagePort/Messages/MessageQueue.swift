// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Messages in the order of their arrival. The oldest may be claimed by a handler's thread, which takes them without
/// the lock that guards the queue; they count as long as they are not taken, and whatever else takes messages gets them
/// back first.
struct MessageQueue: Sendable {
    private var ring = Ring<MachMessage>()
    private var claim: MessageClaim?
    /// So many messages are taken before the next claim: somebody else takes messages, too.
    private var takesBeforeClaim: UInt8 = 0

    private static let takesAfterReclaim: UInt8 = 64

    var count: Int { ring.count + (claim?.remaining ?? 0) }
    var isEmpty: Bool { ring.isEmpty && (claim?.remaining ?? 0) == 0 }
    /// The count, or more: it is told without a look at what another thread takes.
    private var countAtMost: Int { ring.count + (claim?.count ?? 0) }

    /// Whether there are fewer messages than that.
    func isShorter(than limit: Int) -> Bool { countAtMost < limit || count < limit }

    mutating func append(_ message: consuming MachMessage) {
        ring.append(message)
    }

    mutating func popFirst() -> MachMessage? {
        reclaim()
        if takesBeforeClaim > 0 { takesBeforeClaim -= 1 }
        return ring.popFirst()
    }

    /// Removes the oldest message of a kind; those before it move up, so this takes as long as there are of those.
    mutating func removeFirst(where isWanted: (MachMessage) -> Bool) -> MachMessage? {
        reclaim()
        return ring.removeFirst(where: isWanted)
    }

    mutating func removeAll() -> [MachMessage] {
        reclaim()
        return ring.removeAll()
    }

    /// Gives the oldest messages to a handler's thread.
    ///
    /// - Parameters:
    ///   - used: a claim of that thread that no queue has any more; asked for when one is made.
    ///   - limit: the most messages.
    /// - Returns: the claim; nil when it is not worth while, or others take messages.
    mutating func makeClaim(
        reusing used: @autoclosure () -> MessageClaim?, atMost limit: Int = .max
    ) -> MessageClaim? {
        guard claim == nil, takesBeforeClaim == 0, !ring.isEmpty else { return nil }
        let made = used() ?? MessageClaim()
        made.fill(from: &ring, atMost: limit)
        claim = made
        return made
    }

    /// Takes back what is claimed and not yet taken, because somebody else needs the queue: nothing is claimed for a
    /// while.
    mutating func reclaim() {
        takeBack { $0 > 0 }
    }

    /// Takes back what is claimed, because its handler is over. If that has taken nothing, there is no use in claims
    /// for a while.
    mutating func endClaim() {
        let count = claim?.count ?? 0
        takeBack { $0 > 0 && $0 == count }
    }

    private mutating func takeBack(pausingIf isInVain: (Int) -> Bool) {
        guard let claim else { return }
        if isInVain(claim.close(into: &ring)) { takesBeforeClaim = Self.takesAfterReclaim }
        self.claim = nil
    }
}
