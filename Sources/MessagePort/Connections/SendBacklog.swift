// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What is sent before the next message. `isWatched`, `isPausing` and `isOver` change independently: a wait for room
/// outlasts the packets that it is for, one at the right's end pauses nothing, and a connection closes during any of it.
struct SendBacklog: ~Copyable {
    /// About how much memory a packet takes besides its payload.
    static let packetCost = 256

    /// Replies that found no room, or their rest; answers to queries, and notices that a reply will not come. Before
    /// them the abort of a message that was sent in part.
    var packets = Deque<OutgoingPacket>()
    /// The bytes of the packets, each with `packetCost` added.
    var size = 0
    var descriptorCount = 0
    /// Whether the I/O thread waits for room to send them.
    var isWatched = false
    /// Whether they wait for room at the port's end: nothing is read from the peer meanwhile.
    var isPausing = false
    /// The charge for them in the peer's account.
    var charge: PeerCharge?
    /// Whether the connection is closed: none of them is sent any more.
    var isOver = false

    var isEmpty: Bool { packets.isEmpty }

    /// Whether there is no backlog, and the peer is read.
    var isIdle: Bool { isEmpty && !isPausing }

    /// Whether these are unflushed replies.
    var isUnflushed: Bool { !isIdle && !isOver }

    mutating func append(_ packet: OutgoingPacket) {
        packets.append(packet)
        count(packet)
    }

    private mutating func count(_ packet: OutgoingPacket) {
        size += packet.payloadSize + Self.packetCost
        descriptorCount += packet.descriptors.count
    }

    /// - Returns: the packet, whose descriptors are released without the lock.
    mutating func popFirst() -> OutgoingPacket? {
        guard let packet = packets.popFirst() else { return nil }
        size -= packet.payloadSize + Self.packetCost
        descriptorCount -= packet.descriptors.count
        return packet
    }

    /// Puts the rest of a message, or its abort, before everything else.
    mutating func prepend(_ rest: [OutgoingPacket]) {
        for packet in rest.reversed() {
            packets.prepend(packet)
            count(packet)
        }
    }
}

/// The backlog of a connection, under a lock. A sender checks twice per message, without the lock, that it is empty.
struct BacklogLock: ~Copyable, Sendable {
    private let backlog = Mutex(SendBacklog())
    /// The backlog's `isIdle`. Changed under the lock.
    private let hasNothing = Atomic<Bool>(true)
    /// Counts the connection while its replies are unflushed; nil at the right's end.
    private let unflushedReplies: UnflushedReplies?  // immutable

    init(countedIn unflushedReplies: UnflushedReplies?) { self.unflushedReplies = unflushedReplies }

    /// Whether there is no backlog, and the peer is read. The thread that unlocks the send lock sees what a thread that
    /// found it locked has added: the latter stores this and then tries the lock, the former unlocks it and then loads
    /// this, and all four operations are sequentially consistent.
    var isIdle: Bool { hasNothing.load(ordering: .sequentiallyConsistent) }

    /// When `body` removed the last unflushed reply, wakes its waiters without the lock.
    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending SendBacklog) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        var isDone = false
        defer { if isDone { unflushedReplies?.leave() } }
        return try backlog.withLock { backlog throws(Failure) in
            let wasUnflushed = backlog.isUnflushed
            defer {
                hasNothing.store(backlog.isIdle, ordering: .sequentiallyConsistent)
                isDone = wasUnflushed && !backlog.isUnflushed
                if !wasUnflushed, backlog.isUnflushed { unflushedReplies?.enter() }
            }
            return try body(&backlog)
        }
    }
}
