// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Sends packets over a connection, one after the other. There are three kinds of traffic:
//
//   messages   wait for the send lock, and for room, until their deadline. One that is larger than a packet goes in
//              several, all under one lock. When the deadline comes between two pieces, the rest is never sent, and an
//              abort packet follows.
//   replies    at the port's end never wait. One that finds no room joins the backlog, and until that is empty nothing
//              more is read from the peer: a peer that does not read its replies gets no further request handled, and
//              delays no other.
//   notices    small packets, which never wait either. They join the backlog, too.
//
// The backlog is sent before the next message, or when the socket has room.
//
// It is a part of its connection, which each call passes in: what a send finds about the connection's life (the peer is
// gone, a request is settled) the connection handles.

import PortSystem
import RunLoopCore
import Synchronization

struct PacketSender: ~Copyable, Sendable {
    /// How many bytes the backlog of the right's end may have before a further packet ends the connection.
    package static let backlogLimit = 16 << 20
    /// The same at the port's end: the replies to the requests that were read before the first of them found no room.
    package static let replyBacklogLimit = 256 << 20

    /// Held by the thread or task that sends.
    let lock = SendLock()
    let channel: OutgoingChannel
    let backlog: BacklogLock
    /// How many bytes of message payloads were sent, for programs that show progress. Changed under the send lock.
    let sentByteCount = Atomic<Int>(0)
    private let isPortsEnd: Bool  // immutable

    init(_ descriptor: SharedDescriptor, isPortsEnd: Bool) {
        self.isPortsEnd = isPortsEnd
        channel = OutgoingChannel(descriptor, isPortsEnd: isPortsEnd)
        backlog = BacklogLock(countedIn: isPortsEnd ? .current : nil)
    }

    // MARK: Messages

    /// Sends a plain message, if it is not large and the lock is free. Where the ring has room this costs a third of
    /// `transmit`, which takes every message.
    ///
    /// - Returns: whether it was sent; false when it is too large, or the lock is not free.
    /// - Throws: as `transmit`.
    func sendPlain(
        _ bytes: [UInt8], id: Int32, answering token: UInt64, until deadline: SendDeadline,
        over connection: SocketConnection
    ) throws(PortError) -> Bool {
        let size = ComponentKind.headSize + bytes.count
        guard size <= OutgoingChannel.ringPieceLimit, lock.tryLock() else { return false }
        let header = PacketHeader(
            kind: .message, messageID: id, componentCount: 1, answers: token, totalLength: UInt64(size))
        let head = ComponentKind.bytes.head(bytes.count).littleEndian
        var waiting: Transmission?
        do throws(PortError) {
            if backlog.isIdle, !connection.isClosed,
                let notice = channel.path.withLock({ $0.writePlain(header.words, firstWord: head, bytes) })
            {
                didSend(size)
                do throws(SendFailure) { try channel.follow(notice) } catch { try settle(error, over: connection) }
            } else if try !offerPlain(
                OutgoingPacket(header: header, firstWord: head, tail: bytes[...]), over: connection)
            {
                waiting = Transmission(OutgoingMessage(id: id, bytes: bytes), asks: 0, answers: token)
            }
        } catch {
            unlock(over: connection)
            throw error
        }
        if var waiting = waiting.take() {
            try finish(&waiting, until: deadline, over: connection)
        } else {
            unlock(over: connection)
        }
        return true
    }

    /// Sends the backlog, and then a packet that is a whole message. The caller holds the lock.
    ///
    /// - Returns: false when there is no room.
    private func offerPlain(_ packet: OutgoingPacket, over connection: SocketConnection) throws(PortError) -> Bool {
        guard try sendBacklog(over: connection) else { return false }
        connection.offerRingsIfDue()
        guard try offer(packet, over: connection) else { return false }
        didSend(packet.payloadSize)
        return true
    }

    /// Counts payload bytes that were sent. The caller holds the lock.
    private func didSend(_ size: Int) {
        sentByteCount.store(sentByteCount.load(ordering: .relaxed) &+ size, ordering: .relaxed)
    }

    /// Sends a message; waits for the lock and for room until the deadline. With a deadline in the past it still waits
    /// for senders that find room: that another sender holds the lock does not mean that there is none.
    func transmit(
        _ message: inout Transmission, until deadline: SendDeadline, over connection: SocketConnection
    ) throws(PortError) {
        var deadline = deadline
        if !lock.tryLock() {
            let instant = deadline.fix()
            let isLocked = instant <= .now ? lock.lockUnlessHolderBlocks() : lock.lock(until: instant)
            if !isLocked { throw PortError(.sendTimedOut) }
        }
        try finish(&message, until: deadline, over: connection)
    }

    /// Sends a message; waits for room. The caller holds the lock, which this unlocks.
    private func finish(
        _ message: inout Transmission, until deadline: SendDeadline, over connection: SocketConnection
    ) throws(PortError) {
        var deadline = deadline
        defer { unlock(over: connection) }
        do throws(PortError) {
            while try !proceed(&message, over: connection) {
                let instant = deadline.fix()
                if instant <= .now { throw PortError(.sendTimedOut) }
                lock.holderWillBlock()
                defer { lock.holderDidContinue() }
                try PortError.converting(channel.waitForRoom(until: instant))
            }
        } catch {
            abort(message)
            throw error
        }
    }

    /// As above, in a task, which holds the lock while it is suspended.
    nonisolated(nonsending) func transmit(
        _ message: inout Transmission, waiting wait: TaskWaiter, over connection: SocketConnection
    ) async throws(PortError) {
        try await lock.lock(waiting: wait)
        defer { unlock(over: connection) }
        do throws(PortError) {
            while try !proceed(&message, over: connection) {
                lock.holderWillBlock()
                defer { lock.holderDidContinue() }
                try await connection.waitForRoom(wait)
            }
        } catch {
            abort(message)
            throw error
        }
    }

    private func unlock(over connection: SocketConnection) {
        lock.unlock()
        if !backlog.isIdle { flush(over: connection) }
    }

    /// The rest of a message will never be sent: if a part was, the peer must know.
    private func abort(_ message: borrowing Transmission) {
        if message.isBegun { backlog.withLock { $0.prepend([OutgoingPacket(header: PacketHeader(kind: .abort))]) } }
    }

    /// Sends the backlog, and as much of a message as there is room for. The caller holds the lock.
    ///
    /// - Returns: whether all was sent; false when there is no room for the rest.
    private func proceed(_ message: inout Transmission, over connection: SocketConnection) throws(PortError) -> Bool {
        // What joins the backlog between two pieces waits: the pieces of one message are contiguous.
        if !message.isBegun {
            if try !sendBacklog(over: connection) { return false }
            connection.offerRingsIfDue()
        }
        while !message.isDone {
            let packet = message.next(atMost: pieceLimit(for: message))
            guard try offer(packet, over: connection) else { return false }
            let size = packet.payloadSize
            message.advance(by: size)
            didSend(size)
        }
        return true
    }

    private func pieceLimit(for message: borrowing Transmission) -> Int {
        message.restSize > OutgoingChannel.ringPieceLimit && channel.path.withLock { $0.usesRing }
            ? OutgoingChannel.ringPieceLimit : PacketHeader.payloadLimit
    }

    /// Offers one packet to the peer. The caller holds the lock.
    ///
    /// - Returns: false when there is no room.
    private func offer(_ packet: OutgoingPacket, over connection: SocketConnection) throws(PortError) -> Bool {
        do throws(SendFailure) {
            return try channel.offer(packet) { !connection.isClosed }
        } catch {
            try settle(error, over: connection)
            return true
        }
    }

    /// Applies a send failure to the connection.
    ///
    /// - Throws: the error for the packet; none when it was sent all the same.
    private func settle(_ failure: SendFailure, over connection: SocketConnection) throws(PortError) {
        switch failure {
        case .peerClosed: throw connection.peerDidClose()
        case .malformedRing:
            _ = connection.refuse(.malformedPacket)
            throw PortError(.malformedPacket)
        case .refused(let error): throw PortError(error)
        // The peer would not read the packet: requests that await an answer end with the connection.
        case .cannotWake(let error): connection.close(PortError(error))
        }
    }

    // MARK: Replies and notices

    /// Sends a reply, as `SocketConnection.reply` says.
    func reply(
        _ message: inout Transmission, settling token: UInt64, over connection: SocketConnection
    ) throws(PortError) {
        // At the right's end the lock is for senders that wait; there the whole reply joins the backlog.
        guard isPortsEnd, lock.tryLock() else {
            guard enqueueIfAllowed(message.rest(settling: token)) else { return try failUnread(connection) }
            return flush(over: connection)
        }
        var outcome = Result { () throws(PortError) in try proceed(&message, over: connection) }
        var isAllowed = true
        // What cannot be sent now is the backlog, which is retried: this reply waits behind it.
        if case .failure(let failure) = outcome, failure.code != .deadName, !message.isBegun, !connection.isClosed,
            backlog.withLock({ !$0.isEmpty })
        {
            outcome = .success(false)
        }
        switch outcome {
        case .failure: abort(message)
        case .success(true): break
        case .success(false):
            // Before the unlock: the pieces of one message are contiguous.
            let isBegun = message.isBegun
            let rest = message.rest(settling: token)
            if isBegun { backlog.withLock { $0.prepend(rest) } } else { isAllowed = enqueueIfAllowed(rest) }
        }
        lock.unlock()
        if !isAllowed { try failUnread(connection) }
        flush(over: connection)
        if try outcome.get() { connection.didSettleReply(to: token) }
    }

    private func failUnread(_ connection: SocketConnection) throws(PortError) {
        endBecauseUnread(connection)
        throw PortError(.deadName)
    }

    /// Sends a packet now, before the next message, or when there is room. A peer whose backlog is over the limit does
    /// not read, and would make this process retain ever more: the connection ends.
    func enqueue(_ packet: OutgoingPacket, over connection: SocketConnection) {
        if enqueueIfAllowed([packet]) { return flush(over: connection) }
        endBecauseUnread(connection)
        if packet.settles != 0 { connection.didSettleReply(to: packet.settles) }
    }

    /// - Returns: false when the backlog is over its limit already.
    private func enqueueIfAllowed(_ packets: [OutgoingPacket]) -> Bool {
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

    /// Sends a packet if there is room now and nothing else is being sent; otherwise drops it.
    func offerAside(_ packet: OutgoingPacket, over connection: SocketConnection) {
        guard lock.tryLock() else { return }
        if backlog.withLock({ $0.isEmpty }) { _ = try? offer(packet, over: connection) }
        unlock(over: connection)
    }

    // MARK: The backlog

    /// Sends as much of the backlog as there is room for. The caller holds the lock.
    ///
    /// - Returns: whether all was sent.
    func sendBacklog(over connection: SocketConnection) throws(PortError) -> Bool {
        if backlog.isIdle { return true }
        while let next = backlog.withLock({ $0.packets.first }) {
            guard try offer(next, over: connection) else { return false }
            _ = backlog.withLock { $0.popFirst() }
            if next.settles != 0 { connection.didSettleReply(to: next.settles) }
        }
        return true
    }

    /// Sends the backlog as far as there is room. Never waits; when another thread is sending, that thread does this
    /// afterwards. Called also after each unlock: the holder may have sent the backlog before its own message, and then
    /// the peer is read again.
    func flush(over connection: SocketConnection) {
        while !backlog.isIdle, !connection.isClosed {
            let (isEmpty, isPausing) = backlog.withLock { ($0.isEmpty, $0.isPausing) }
            if isEmpty { return isPausing ? resumeReading(over: connection) : () }
            guard lock.tryLock() else { return }
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
    private func dropBacklog(over connection: SocketConnection) {
        var dropped = backlog.withLock { backlog in
            var rest = SendBacklog(isWatched: backlog.isWatched, isOver: backlog.isOver)
            swap(&rest, &backlog)
            return rest
        }
        dropped.charge = nil
        if dropped.isPausing { connection.resumeReading() }
        while let packet = dropped.packets.popFirst() {
            if packet.settles != 0 { connection.didSettleReply(to: packet.settles) }
        }
    }

    /// The backlog was sent: the peer is read again.
    func resumeReading(over connection: SocketConnection) {
        // The account first: it is correct before the peer is read again.
        _ = backlog.withLock { $0.isPausing && $0.isEmpty ? $0.charge.take() : nil }
        var charge: PeerCharge?
        let wasPausing = backlog.withLock { backlog in
            guard backlog.isPausing, backlog.isEmpty else { return false }
            backlog.isPausing = false
            swap(&charge, &backlog.charge)
            return true
        }
        charge = nil  // another thread has charged since; released without the lock
        if wasPausing { connection.resumeReading() }
    }

    /// Charges the peer's process for what it has not read.
    private func chargeBacklog(over connection: SocketConnection) {
        guard let quotas = connection.quotas(of: connection.sink) else { return }
        let cost = backlog.withLock { ResourceUsage(bytes: $0.size, descriptors: $0.descriptorCount) }
        var charge: PeerCharge? = quotas.charge(connection.owner, forUnread: cost)
        backlog.withLock { if $0.isPausing { swap(&charge, &$0.charge) } }
        charge = nil  // the old one, or the one for what was sent meanwhile, is released without the lock
    }

    var isAwaitingRoom: Bool { isPortsEnd && !backlog.isIdle && backlog.withLock { $0.isPausing } }
}
