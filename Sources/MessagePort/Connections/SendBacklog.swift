// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// What is sent before the next message. `isWatched`, `isPausing` and `isOver` change independently: a wait for room
/// outlasts the packets that it is for, one at the right's end pauses nothing, and a connection closes during any of it.
struct SendBacklog: ~Copyable {
    /// About how much memory a packet takes besides its payload.
    static let packetCost = 256

    /// What only a connection has that has found no room.
    private struct ColdState: ColdValue, ~Copyable {
        static let blank = ColdBox<ColdState>()
        var packets = Deque<OutgoingPacket>()
        var size = 0
        var descriptorCount = 0
        var charge: PeerCharge?
    }

    private var coldState = ColdStorage<ColdState>()
    /// Replies that found no room, or their rest; answers to queries, and notices that a reply will not come. Before
    /// them the abort of a message that was sent in part.
    private var packets: Deque<OutgoingPacket> {
        _read { yield coldState.value.packets }
        _modify { yield &coldState.value.packets }
    }
    var first: OutgoingPacket? { packets.first }
    /// The bytes of the packets, each with `packetCost` added.
    var size: Int {  // set by tests, too
        _read { yield coldState.value.size }
        _modify { yield &coldState.value.size }
    }
    private(set) var descriptorCount: Int {
        _read { yield coldState.value.descriptorCount }
        _modify { yield &coldState.value.descriptorCount }
    }
    /// Whether the I/O thread waits for room to send them.
    var isWatched = false
    /// Whether they wait for room at the port's end: nothing is read from the peer meanwhile.
    var isPausing = false
    /// Whether the connection is closed: none of them is sent any more.
    var isOver = false

    init() {}

    /// An empty one, in place of another.
    init(inPlaceOf other: borrowing SendBacklog) { (isWatched, isOver) = (other.isWatched, other.isOver) }

    /// Exchanges the charge for the packets in the peer's account; returns the old one, which is released without the lock.
    mutating func exchangeCharge(_ charge: consuming PeerCharge?) -> PeerCharge? {
        if charge == nil, coldState.isBlank { return nil }
        swap(&charge, &coldState.value.charge)
        return charge
    }

    var isEmpty: Bool { coldState.isBlank || packets.isEmpty }

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
        if isEmpty { return nil }
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

// MARK: - Sending it

extension PacketSender {
    /// Sends a packet now, before the next message, or when there is room. A peer whose backlog is over the limit does
    /// not read, and would make this process retain ever more: the connection ends.
    func enqueue(_ packet: OutgoingPacket, over connection: SocketConnection) {
        if enqueueIfAllowed([packet]) { return flush(over: connection) }
        endBecauseUnread(connection)
        if packet.settles != 0 { connection.didSettleReply(to: packet.settles) }
    }

    /// Sends a packet if there is room now and nothing waits to be sent; otherwise drops it. Waits for a thread that is
    /// sending, which soon ends, and not for one that waits for room.
    func offerAside(_ packet: OutgoingPacket, over connection: SocketConnection) {
        guard lock.tryLock() || lock.lockUnlessHolderBlocks() else { return }
        if backlog.withLock({ $0.isEmpty }) { _ = try? offer(packet, over: connection) }
        unlock(over: connection)
    }

    /// - Returns: false when the backlog is over its limit already.
    func enqueueIfAllowed(_ packets: [OutgoingPacket]) -> Bool {
        let limit = isPortsEnd ? Self.replyBacklogLimit : Self.backlogLimit
        return backlog.withLock { backlog in
            if backlog.size > limit { return false }
            for packet in packets { backlog.append(packet) }
            return true
        }
    }

    /// Ends a connection whose peer does not read what it is sent.
    func endBecauseUnread(_ connection: SocketConnection) {
        connection.close(PortError(.peerNotReading))
        dropBacklog(over: connection)
    }

    /// Sends as much of the backlog as there is room for. The caller holds the lock.
    ///
    /// - Returns: whether all was sent.
    func sendBacklog(over connection: SocketConnection) throws(PortError) -> Bool {
        if backlog.isIdle { return true }
        while let next = backlog.withLock({ $0.first }) {
            guard try offer(next, over: connection) else { return false }
            _ = backlog.withLock { $0.popFirst() }
            if next.settles != 0 { releaseElsewhere(connection.settleReply(to: next.settles)) }
        }
        return true
    }

    /// Releases handlers of the program on the I/O thread: this one has the send lock, or a task that it runs has.
    private func releaseElsewhere(_ handlers: consuming [@Sendable () -> Void]) {
        if handlers.isEmpty { return }
        guard let loop = try? IOThread.loop() else { return Callouts.drop(handlers) }
        // The block may have run before this thread lets go of it.
        let reference = ReleasableReference(handlers)
        loop.perform { reference.release() }
    }

    /// Sends the backlog as far as there is room. Never waits; when another thread is sending, that thread does this
    /// afterwards. Called also after each unlock: the holder may have sent the backlog before its own message, and then
    /// the peer is read again.
    func flush(over connection: SocketConnection) {
        // The sender of a message in pieces does this at its end.
        while !backlog.isIdle, !connection.isClosed, betweenPieces.load(ordering: .sequentiallyConsistent) < 0 {
            let (isEmpty, isPausing) = backlog.withLock { ($0.isEmpty, $0.isPausing) }
            if isEmpty { return isPausing ? resumeReading(over: connection) : () }
            guard lock.tryLock() else { return }
            if isWithinLargeMessage {
                lock.unlock()
                continue
            }
            let outcome = Result { () throws(PortError) in try sendBacklog(over: connection) }
            lock.unlock()
            switch outcome {
            case .success(true): continue
            // A peer that has stopped reading always has room: a wait for it would never end.
            case .failure(let failure) where failure.code == .deadName: return dropBacklog(over: connection)
            case .success(false): return awaitRoom(over: connection)
            // The peer broke the format, for example.
            case .failure where connection.isClosed: return dropBacklog(over: connection)
            case .failure: return awaitRoom(over: connection, orAfter: Tuning.timeUntilRetry)
            }
        }
    }

    /// The backlog finds no room. The I/O thread sends it when there is; at the port's end it is started for that, and
    /// without it the thread that receives for the port does so. At the right's end, without it, the backlog goes
    /// before the next message, or when something is received. After a failure it is retried after `pause` instead:
    /// there may be room, so a wait for it would end at once.
    func awaitRoom(over connection: SocketConnection, orAfter pause: Duration? = nil) {
        guard isPortsEnd else {
            if let loop = IOThread.startedLoop { watchRoom(over: connection, on: loop, orAfter: pause) }
            return
        }
        let isPausing = backlog.withLock { backlog in
            if !backlog.isEmpty { backlog.isPausing = true }
            return !backlog.isEmpty
        }
        // Another thread has sent it since. The first of the two has the peer read again.
        guard isPausing else { return resumeReading(over: connection) }
        chargeBacklog(over: connection)
        if let loop = try? IOThread.loop() { watchRoom(over: connection, on: loop, orAfter: pause) }
        connection.updateInterest()
    }

    private func watchRoom(over connection: SocketConnection, on loop: ThreadRunLoop, orAfter pause: Duration?) {
        let isWatched = backlog.withLock { backlog in
            defer { backlog.isWatched = true }
            return backlog.isWatched
        }
        if isWatched { return }
        // A port that has ended no longer retains its connections, but the replies that it owes must still be sent.
        let owner = isPortsEnd ? connection : nil
        func retry(after pause: Duration) {
            loop.add(RunLoopTimer(after: pause) { [weak connection, owner] _ in (owner ?? connection)?.roomDidCome() })
        }
        if let pause { return retry(after: pause) }
        do {
            let (descriptor, events) = (connection.descriptor.rawValue, connection.roomEvents)
            try IOThread.rooms().add(descriptor, events, once: true) { connection.roomDidCome() }
        } catch {
            // Room cannot be watched: at the port's end, which nothing else may poll any more, it is retried.
            if owner != nil { return retry(after: Tuning.timeUntilRetry) }
            backlog.withLock { $0.isWatched = false }
        }
    }

    /// Drops the backlog, which the peer will not read.
    func dropBacklog(over connection: SocketConnection) {
        var dropped = backlog.withLock { backlog in
            var rest = SendBacklog(inPlaceOf: backlog)
            swap(&rest, &backlog)
            return rest
        }
        _ = dropped.exchangeCharge(nil)
        if dropped.isPausing { connection.resumeReading() }
        while let packet = dropped.popFirst() {
            if packet.settles != 0 { connection.didSettleReply(to: packet.settles) }
        }
    }

    /// The backlog was sent: the peer is read again.
    func resumeReading(over connection: SocketConnection) {
        // The account first: it is correct before the peer is read again.
        _ = backlog.withLock { $0.isPausing && $0.isEmpty ? $0.exchangeCharge(nil) : nil }
        var wasPausing = false
        // Another thread may have charged since.
        _ = backlog.withLock { backlog -> PeerCharge? in
            guard backlog.isPausing, backlog.isEmpty else { return nil }
            backlog.isPausing = false
            wasPausing = true
            return backlog.exchangeCharge(nil)
        }
        if wasPausing { connection.resumeReading() }
    }

    /// Charges the peer's process for what it has not read.
    private func chargeBacklog(over connection: SocketConnection) {
        guard let quotas = connection.quotas(of: connection.sink) else { return }
        let cost = backlog.withLock { ResourceUsage(bytes: $0.size, descriptors: $0.descriptorCount) }
        var charge: PeerCharge? = quotas.charge(connection.owner, forUnread: cost)
        // The old one, or the one for what was sent meanwhile, is released without the lock.
        _ = backlog.withLock { $0.isPausing ? $0.exchangeCharge(charge.take()) : charge.take() }
    }

    var isAwaitingRoom: Bool { isPortsEnd && !backlog.isIdle && backlog.withLock { $0.isPausing } }
}
