// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Sends packets over a connection, one after the other. There are three kinds of traffic:
//
//   messages   wait for the send lock, and for room, until their deadline. One that is larger than a packet goes in
//              several. Between two of them its sender lets those of small messages for the port send: it holds the
//              lock for each piece, and the line of large messages for all. When the deadline comes between two pieces,
//              the rest is never sent, and an abort packet follows.
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

/// Why the rest of a message is not sent yet.
enum WaitReason {
    /// There is no room for the rest.
    case lacksRoom
    /// The port has to grant a slot, and knows the connection's number.
    case lacksGrant
    /// Another message is being sent in pieces.
    case lacksTurn
    /// A piece was sent, and others wait for the lock.
    case othersWait
}

struct PacketSender: ~Copyable, Sendable {
    /// How many bytes the backlog of the right's end may have before a further packet ends the connection.
    package static let backlogLimit = 16 << 20
    /// The same at the port's end: the replies to the requests that were read before the first of them found no room.
    package static let replyBacklogLimit = 256 << 20

    /// Held by the sender of a message for the port that is larger than a packet, until all of it was sent.
    let largeLine = SendLock()
    /// How many bytes of other messages may be sent before the next piece of the message that is sent in pieces;
    /// negative when there is none. Its sender holds `largeLine`; it is changed under the send lock, but for the end.
    let betweenPieces = Atomic<Int>(-1)
    /// Held by the thread or task that sends.
    let lock = SendLock()
    let channel: OutgoingChannel
    let backlog: BacklogLock
    /// What the port lets this end send.
    let credit: SendCredit
    /// How many bytes of message payloads were sent, for programs that show progress. Changed under the send lock.
    let sentByteCount = Atomic<Int>(0)
    let isPortsEnd: Bool  // immutable

    /// A port without an address cannot be asked for room.
    init(_ descriptor: SharedDescriptor, isPortsEnd: Bool, hasAddress: Bool) {
        credit = SendCredit(isUnlimited: isPortsEnd || !hasAddress)
        self.isPortsEnd = isPortsEnd
        channel = OutgoingChannel(descriptor, isPortsEnd: isPortsEnd)
        backlog = BacklogLock(countedIn: isPortsEnd ? .current : nil)
    }

    /// Whether a message is being sent in pieces, and its sender lets others in between.
    /// After a message that was given up, the thread that finds this false finds its abort in the backlog.
    var isWithinLargeMessage: Bool { betweenPieces.load(ordering: .acquiring) >= 0 }

    /// Whether a message for the port has to wait for a grant, or behind a sender that does.
    var mustAwaitCredit: Bool { !isPortsEnd && (!credit.mayBegin || credit.line.isLocked) }

    // MARK: Messages

    /// Sends a plain message, if it is not large and the lock is free. Where the ring has room this costs a third of
    /// `transmit`, which takes every message. `head` is that of its first record, in memory order, and `body` what
    /// follows. The asker polls for its reply before a port that sleeps is woken.
    ///
    /// - Returns: whether it was sent; false when it is too large, or the lock is not free.
    /// - Throws: as `transmit`.
    func sendPlain(
        _ head: UInt64, _ body: [UInt8], id: Int32, asks: UInt64, from asker: (any ReplyReceiver)? = nil,
        answers: UInt64, until deadline: SendDeadline, over connection: SocketConnection
    ) throws(PortError) -> Bool {
        guard Self.mayBePlain(body), lock.tryLock() else { return false }
        do throws(PortError) {
            let mustWait = isWithinLargeMessage || answers == 0 && mustAwaitCredit
            if !mustWait,
                try offerPlain(head, body, id: id, asks: asks, from: asker, answers: answers, over: connection)
            {
                unlock(over: connection)
                return true
            }
        } catch {
            unlock(over: connection)
            throw error
        }
        var message = Transmission(OutgoingMessage(id: id, head, body), asks: asks, answers: answers)
        try finish(&message, until: deadline, over: connection)
        return true
    }

    /// Sends a plain reply, if it is not large, the lock is free, nothing waits to be sent, and there is room.
    ///
    /// - Returns: whether it was sent.
    /// - Throws: as `reply`.
    func replyPlain(
        _ bytes: [UInt8], id: Int32, answers: UInt64, over connection: SocketConnection
    ) throws(PortError) -> Bool {
        guard isPortsEnd, Self.mayBePlain(bytes), backlog.isIdle, lock.tryLock() else { return false }
        defer { unlock(over: connection) }
        if !backlog.isIdle { return false }
        let head = ComponentKind.bytes.head(bytes.count).littleEndian
        do throws(PortError) {
            return try offerPlain(head, bytes, id: id, asks: 0, from: nil, answers: answers, over: connection)
        } catch {
            // What cannot be sent now is what has joined the backlog since: the reply waits behind it.
            if error.code != .deadName, !connection.isClosed, backlog.withLock({ !$0.isEmpty }) { return false }
            throw error
        }
    }

    /// Whether a message with such a body fits in a record of the ring.
    static func mayBePlain(_ body: [UInt8]) -> Bool {
        ComponentKind.headSize + body.count <= OutgoingChannel.ringPieceLimit
    }

    /// Offers a plain message: first the ring, then, after the backlog, either path. The caller holds the lock.
    ///
    /// - Returns: false when there is no room.
    private func offerPlain(
        _ head: UInt64, _ body: [UInt8], id: Int32, asks: UInt64, from asker: (any ReplyReceiver)?, answers: UInt64,
        over connection: SocketConnection
    ) throws(PortError) -> Bool {
        let size = ComponentKind.headSize + body.count
        let header = PacketHeader(
            kind: .message, messageID: id, componentCount: 1, asks: asks, answers: answers, totalLength: UInt64(size))
        if backlog.isIdle, !connection.isClosed,
            let notice = channel.path.withLock({ $0.writePlain(header.words, firstWord: head, body) })
        {
            if case .wakeUp = notice { asker?.willWakeResponder(over: connection) }
            guard try follow(notice, over: connection) else {
                channel.path.withLock { $0.ringDidClose() }
                return false
            }
        } else {
            guard try sendBacklog(over: connection) else { return false }
            connection.offerRingsIfDue()
            let packet = OutgoingPacket(header: header, firstWord: head, tail: body[...])
            guard try offer(packet, over: connection) else { return false }
        }
        didSend(size)
        if answers == 0 { credit.didBegin(asking: asks) }
        return true
    }

    /// - Returns: whether the consumer of the ring takes the packet.
    private func follow(_ notice: OutgoingPath.Notice, over connection: SocketConnection) throws(PortError) -> Bool {
        do throws(SendFailure) {
            return try channel.follow(notice)
        } catch {
            try settle(error, over: connection)
            return true
        }
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
        if !lock.tryLock() { try acquire(lock, until: deadline.fix()) }
        try finish(&message, until: deadline, over: connection)
    }

    /// Sends a message; waits for room. The caller holds the lock, which this unlocks.
    private func finish(
        _ message: inout Transmission, until deadline: SendDeadline, over connection: SocketConnection
    ) throws(PortError) {
        var (deadline, isLocked) = (deadline, true)
        // Open until the message is sent: without it the port takes the slot back.
        var query: CreditQuery?
        defer { end(message, isLocked: isLocked, query, over: connection) }
        do throws(PortError) {
            var (fullAt, mayWait, relockLimit) = (nil as Int?, nil as Bool?, nil as MonotonicInstant?)
            while let reason = try proceed(&message, over: connection) {
                let instant = deadline.fix()
                let isInTime = instant > .now
                if mayWait == true, !isInTime, reason != .othersWait { throw PortError(.sendTimedOut) }
                mayWait = mayWait ?? isInTime
                isLocked = release(message, because: reason, over: connection)
                switch reason {
                case .othersWait: break
                case .lacksTurn:
                    leaveLine(&message)
                    try acquire(largeLine, until: instant)
                    message.isInTurn = true
                case .lacksGrant:
                    try enterLine(&message, until: instant, over: connection)
                    query = try awaitCredit(for: message, until: instant, mayWait: isInTime, over: connection)
                case .lacksRoom where fullAt != message.restSize:
                    fullAt = message.restSize
                    try makeRoom(for: message, until: instant, mayWait: isInTime, over: connection)
                case .lacksRoom:
                    if !isInTime { throw PortError(.sendTimedOut) }
                    try waitForRoom(for: message, until: instant)
                }
                if isLocked { continue }
                if !lock.tryLock() {
                    if isInTime || message.isBegun { holderOfLinesWillBlock(message) }
                    // A sender that does not wait has begun the message: others are let in, and let it continue.
                    let mustContinue = message.isBegun && mayWait == false
                    if mustContinue { relockLimit = relockLimit ?? .after(Tuning.creditAnswerTime) }
                    try acquire(lock, until: mustContinue ? relockLimit ?? instant : instant)
                }
                isLocked = true
                if message.isInTurn { largeLine.holderDidContinue() }
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
        var isLocked = true
        var query: CreditQuery?
        var extended: TaskWaiter?
        defer {
            end(message, isLocked: isLocked, query, over: connection)
            extended?.finish()
        }
        do throws(PortError) {
            var (fullAt, mayWait) = (nil as Int?, nil as Bool?)
            while let reason = try proceed(&message, over: connection) {
                let isInTime = wait.mayWait
                if mayWait == true, !isInTime, reason != .othersWait { throw PortError(.sendTimedOut) }
                mayWait = mayWait ?? isInTime
                isLocked = release(message, because: reason, over: connection)
                switch reason {
                case .othersWait: break
                case .lacksTurn:
                    leaveLine(&message)
                    try await largeLine.lock(waiting: wait)
                    message.isInTurn = true
                case .lacksGrant:
                    if message.isInTurn { largeLine.holderWillBlock() }
                    if !message.isFirstInLine { try await credit.line.lock(waiting: wait) }
                    message.isFirstInLine = true
                    query = try await awaitCredit(for: message, waiting: wait, over: connection)
                case .lacksRoom where fullAt != message.restSize && !isInTime:
                    fullAt = message.restSize
                    try makeRoom(for: message, until: .distantPast, mayWait: false, over: connection)
                case .lacksRoom:
                    let knock = fullAt == message.restSize ? nil : try openKnock(over: connection)
                    fullAt = message.restSize
                    holderWillBlock(for: message)
                    defer { holderDidContinue(for: message) }
                    try await connection.waitForRoom(wait)
                    withExtendedLifetime(knock) {}
                }
                if isLocked { continue }
                holderOfLinesWillBlock(message)
                do throws(PortError) {
                    try await lock.lock(waiting: wait)
                } catch {
                    // As above: others were let in, and let it continue.
                    guard error.code == .sendTimedOut, message.isBegun else { throw error }
                    let waiter = extended ?? TaskWaiter(until: .after(Tuning.creditAnswerTime))
                    extended = waiter
                    try await lock.lock(waiting: waiter)
                }
                isLocked = true
                if message.isInTurn { largeLine.holderDidContinue() }
            }
        } catch {
            abort(message)
            throw error
        }
    }

    func unlock(over connection: SocketConnection) {
        lock.unlock()
        if !backlog.isIdle { flush(over: connection) }
    }

    /// The rest of a message will never be sent: if a part was, the peer must know.
    private func abort(_ message: borrowing Transmission) {
        if !message.isBegun { return }
        backlog.withLock { $0.prepend([OutgoingPacket(header: PacketHeader(kind: .abort))]) }
        // After that: the next sender finds that there is no message, and sends the backlog first.
        if message.mayBeDivided { betweenPieces.store(-1, ordering: .sequentiallyConsistent) }
    }

    /// Sends the backlog, and as much of a message as there is room for. The caller holds the lock.
    ///
    /// - Returns: why there is a rest; nil when all was sent.
    private func proceed(
        _ message: inout Transmission, over connection: SocketConnection
    ) throws(PortError) -> WaitReason? {
        // What joins the backlog between two pieces waits.
        if !message.isBegun, let reason = try reasonToWait(before: message, over: connection) { return reason }
        while !message.isDone {
            let isFirst = !message.isBegun
            let packet = message.next(atMost: pieceLimit(for: message))
            guard try offer(packet, over: connection) else { return .lacksRoom }
            let size = packet.payloadSize
            message.advance(by: packet)
            didSend(size)
            if isFirst, message.isForPort, !isPortsEnd { didBegin(&message) }
            if isWithinLargeMessage || message.mayBeDivided {
                countBetweenPieces(message, size)
                if !message.isDone, lock.isContended { return .othersWait }
            }
        }
        return nil
    }

    func pieceLimit(for message: borrowing Transmission) -> Int {
        message.restSize > OutgoingChannel.ringPieceLimit && channel.path.withLock { $0.usesRing }
            ? OutgoingChannel.ringPieceLimit : PacketHeader.payloadLimit
    }

    /// Offers one packet to the peer. The caller holds the lock.
    ///
    /// - Returns: false when there is no room.
    func offer(_ packet: OutgoingPacket, over connection: SocketConnection) throws(PortError) -> Bool {
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
        var outcome = Result { () throws(PortError) in try proceed(&message, over: connection) == nil }
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
}
