// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What is to be sent before the next message.
struct SendBacklog: ~Copyable {
    var needsAbort = false
    /// Notices that a reply will not come, and the pieces of replies that were handed on.
    var packets = Deque<BacklogPacket>()
    /// The bytes of the packets, each counted with `BacklogPacket.cost` more.
    var size = 0
    /// The descriptors in them.
    var descriptorCount = 0
    /// The shared thread waits for room to send them.
    var isWatched = false
    /// They wait for room at the port's end: nothing is read from the peer meanwhile.
    var isPausing = false
    /// For them, in the peer's account.
    var charge: PeerCharge?
    /// The connection is closed: nothing of them is sent any more.
    var isOver = false

    var isEmpty: Bool { !needsAbort && packets.isEmpty }

    mutating func append(_ packet: BacklogPacket) {
        packets.append(packet)
        size += packet.size
        descriptorCount += packet.packet.descriptors.count
    }

    /// - Returns: the packet, whose descriptors go without the lock.
    mutating func popFirst() -> BacklogPacket? {
        guard let packet = packets.popFirst() else { return nil }
        size -= packet.size
        descriptorCount -= packet.packet.descriptors.count
        return packet
    }

    /// Puts the rest of a message before everything else.
    mutating func prepend(_ rest: [BacklogPacket]) {
        let others = packets.removeAll()
        for packet in rest + others { packets.append(packet) }
        for packet in rest {
            size += packet.size
            descriptorCount += packet.packet.descriptors.count
        }
    }
}

struct BacklogPacket {
    var packet: OutgoingPacket
    /// With it the request that asked with this token over the connection is answered, or dropped.
    var settles: UInt64?

    /// What a packet takes besides its payload, about.
    static let cost = 256
    var size: Int { packet.payloadSize + Self.cost }
}

/// The backlog of a connection, under a lock. A sender checks twice for each message that there is none, and needs no lock for
/// that.
struct BacklogLock: ~Copyable, Sendable {
    private let backlog = Mutex(SendBacklog())
    /// Changed under the lock.
    private let hasNothing = Atomic<Bool>(true)
    /// The connection is among those whose replies are unflushed. Changed under the lock.
    private let isCounted = Atomic<Bool>(false)
    /// Counts the connection while it has a backlog; nil at the right's end.
    private let unflushedReplies: UnflushedReplies?  // immutable

    init(countedIn unflushedReplies: UnflushedReplies?) {
        self.unflushedReplies = unflushedReplies
    }

    /// Whether there is no backlog, and the peer is read. The thread that unlocks the send lock sees what was added by one that found
    /// it locked: the one sets this and then tries the lock, the other unlocks it and then loads this, and all four are sequentially
    /// consistent.
    var isIdle: Bool { hasNothing.load(ordering: .sequentiallyConsistent) }

    /// Wakes, without the lock, what waits until no reply is unflushed, when `body` removed the last.
    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending SendBacklog) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        var isDone = false
        defer { if isDone { unflushedReplies?.leave() } }
        return try backlog.withLock { backlog throws(Failure) in
            defer {
                let isIdle = backlog.isEmpty && !backlog.isPausing
                hasNothing.store(isIdle, ordering: .sequentiallyConsistent)
                isDone = count(!isIdle && !backlog.isOver)
            }
            return try body(&backlog)
        }
    }

    /// - Returns: whether the connection has just left those whose replies are unflushed.
    private func count(_ hasReplies: Bool) -> Bool {
        guard let unflushedReplies, isCounted.exchange(hasReplies, ordering: .relaxed) != hasReplies else {
            return false
        }
        if hasReplies { unflushedReplies.enter() }
        return !hasReplies
    }
}
