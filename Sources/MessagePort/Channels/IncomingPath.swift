// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What is kept of a connection from one packet to the next.
struct ReceiveState: ~Copyable, Sendable {
    var assembly = PacketAssembly()
    var lane = IncomingPath()
    var burst = ReceiveBatch()
    /// What the message that is being put together takes up in its sender's account.
    var charge: PeerCharge?
    /// The peer has sent messages to the port: it is noted as one of its senders.
    var hasNotedSender = false
    /// The last packet was a message for the port, and there is room for another, also in the account of its process:
    /// whoever reads on at once need not ask.
    var mayReadOn = false
    /// What is there cannot be read now, because there is no room, say.
    var isBlocked = false

    /// Nothing more comes: a message that was begun will not be finished.
    mutating func giveUp() {
        assembly.giveUp()
        charge = nil
    }

    /// A packet was taken.
    mutating func didTakePacket() {
        if !assembly.isBegun { charge = nil }
    }
}

/// How closely to look for a packet.
enum PollDepth: Comparable, Sendable {
    /// What is in the socket beside a ring may wait: it is reported again.
    case quick
    /// The kernel has reported that something is in the socket.
    case reported
    /// Also behind a bell.
    case thorough
}

/// Where the peer's next packet is.
struct IncomingPath: Sendable {
    var reader: RingConsumer?
    /// The next packet is in the ring, not in the socket.
    var isOnRing = false
    /// The first packet in the socket is a bell that was heard. It stays until the ring is empty: as long as the ring
    /// is not, the socket is readable, and whoever waits for the socket comes back.
    var headIsSpent = false
    /// So many packets on the socket do not lead to the ring.
    var promisedCount = 0
    /// The peer has offered rings, which it may do once.
    var wasOffered = false

    /// A loop looks into the ring by itself; the peer sends no bell.
    var isWatched = false
    /// The number of the last look.
    private(set) var look: UInt64 = 0
    /// A loop has looked into the ring by itself, and since then nobody has told the peer to send a bell and found the
    /// ring empty.
    var wasWatched = false
    /// How often a loop has begun to look since something was taken from the ring.
    private var looksInVain: UInt8 = 0
    /// After this many polls that found nothing the loop stops polling, until the kernel reports something: each ring that is looked at costs
    /// each spin.
    private static let mostInVain: UInt8 = 64

    /// Whether a loop that spins is to look into the ring.
    var isWorthLooking: Bool { looksInVain < Self.mostInVain }

    /// A loop looks into the ring by itself from now on.
    mutating func beginLooking() {
        (isWatched, wasWatched) = (true, true)
        look += 1
        didLookInVain()
    }

    /// The loop has begun to look, or to sleep while it does. That counts as a poll that found nothing, unless something comes.
    mutating func didLookInVain() {
        if isWorthLooking { looksInVain += 1 }
    }

    /// A packet was taken from the ring.
    mutating func didTakeFromRing() { looksInVain = 0 }

    /// A packet other than a bell was taken from the socket.
    mutating func didTakeFromSocket() {
        if promisedCount > 0 { promisedCount -= 1 }
    }

    var hasRing: Bool { reader != nil }

    /// Nothing more is in the ring, and a loop looks there by itself: what is in the socket may wait.
    var isReadForNow: Bool {
        guard isOnRing, isWatched, !headIsSpent, let reader else { return false }
        return !reader.hasMore
    }
}
