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

/// What is overdue on a connection, under a lock; who sends has to know, twice for each message, that nothing is, and
/// needs no lock for that.
struct BacklogLock: ~Copyable, Sendable {
    private let overdue = Mutex(SendBacklog())
    /// Changed under the lock.
    private let hasNothing = Atomic<Bool>(true)
    /// The connection is among those that keep replies. Changed under the lock.
    private let isCounted = Atomic<Bool>(false)
    /// Where it is counted while something is overdue; nil at the right's end.
    private let keptReplies: UnflushedReplies?  // immutable

    init(countedIn keptReplies: UnflushedReplies?) {
        self.keptReplies = keptReplies
    }

    /// Whether nothing is overdue, and the peer is read. What was added by somebody who found the turn taken is seen by
    /// whoever has given it: he looks at the turn after this was set, whoever gives it looks at this after that, and all are
    /// sequentially consistent.
    var isQuiet: Bool { hasNothing.load(ordering: .sequentiallyConsistent) }

    /// Wakes, without the lock, who waits until no reply is kept, when `body` took the last.
    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending SendBacklog) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        var isDone = false
        defer { if isDone { keptReplies?.leave() } }
        return try overdue.withLock { overdue throws(Failure) in
            defer {
                let isQuiet = overdue.isEmpty && !overdue.isPausing
                hasNothing.store(isQuiet, ordering: .sequentiallyConsistent)
                isDone = count(!isQuiet && !overdue.isOver)
            }
            return try body(&overdue)
        }
    }

    /// - Returns: whether the connection is among those that keep replies no more.
    private func count(_ isKeeping: Bool) -> Bool {
        guard let keptReplies, isCounted.exchange(isKeeping, ordering: .relaxed) != isKeeping else { return false }
        if isKeeping { keptReplies.enter() }
        return !isKeeping
    }
}
