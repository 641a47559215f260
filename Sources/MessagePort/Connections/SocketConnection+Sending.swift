// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message larger than a packet goes in several, all in one turn. If the deadline comes between two pieces, the rest is
// never sent; an abort packet goes before whatever is sent next. Small notices that find no room are overdue: they go
// before the next message, or when the socket has room.

import PortSystem
import Synchronization

extension SocketConnection {
    /// Sends a message, waiting for room until the deadline.
    ///
    /// - Parameters:
    ///   - message: the message. If it has a reply right, the reply is awaited here.
    ///   - token: the token of the message that it answers; zero for a message to the port.
    ///   - deadline: one that has passed still sends when there is room.
    /// - Throws: ``PortError`` when the message was not sent as a whole: it passes a limit, the deadline came, the kernel
    ///   failed, or the other end is gone. Then no reply to it is awaited.
    package func send(_ message: MachMessage, answering token: UInt64 = 0, until deadline: SendDeadline)
        throws(PortError)
    {
        try checkProcess()
        if !message.envelope.hasReplyRight, let bytes = message.parts.onlyBytes,
            try sendPlain(bytes, id: message.id, answering: token, until: deadline)
        {
            return
        }
        let encoded = try OutgoingMessage(message)
        let asks = try expectReply(for: message.replyTarget)
        var transmission = Transmission(encoded, asks: asks, answers: token)
        do throws(PortError) {
            try transmit(&transmission, until: deadline)
        } catch {
            forget(token: asks)
            throw error
        }
        if asks != 0 { didSend(token: asks) }
    }

    /// As above, in a task, which holds no thread while it waits for its turn and for room.
    nonisolated(nonsending) func send(_ message: MachMessage, waiting wait: SendWait) async throws(PortError) {
        try checkProcess()
        let encoded = try OutgoingMessage(message)
        let asks = try expectReply(for: message.replyTarget)
        var transmission = Transmission(encoded, asks: asks, answers: 0)
        do throws(PortError) {
            try await transmit(&transmission, waiting: wait)
        } catch {
            forget(token: asks)
            throw error
        }
        if asks != 0 { didSend(token: asks) }
    }

    /// Says that the message that asked with `token` will not be answered, which settles it. Never waits.
    ///
    /// - Parameters:
    ///   - token: the token that came with the message.
    ///   - reason: why; nil when its receiver let the reply right go.
    ///   - delivery: whether the message was read, when that is known.
    func dropReply(to token: UInt64, because reason: PortError.Code? = nil, delivery: PortError.Delivery = .unknown) {
        if isInherited { return }
        let code = Int32(reason?.rawValue ?? 0)
        let header = PacketHeader(
            kind: .replyDropped, messageID: code, componentCount: UInt32(delivery.rawValue), answers: token)
        owe([BacklogPacket(packet: OutgoingPacket(header: header), settles: token)])
    }

    /// Answers the message that asked with `token` with an error, which settles it. Never waits.
    func failReply(to token: UInt64, code: Int32, text: String) {
        let header = PacketHeader(kind: .replyFailed, messageID: code, answers: token)
        let packet = BacklogPacket(
            packet: OutgoingPacket(header: header, payload: Array(text.utf8)[...]), settles: token)
        owe([packet])
    }

    /// Says that nobody waits any more for the reply to the message that asked with `token`. Never waits: without room in
    /// the connection it is said before the next message.
    package func giveUp(token: UInt64) {
        guard !isInherited, takeAwaited(token) != nil, !isClosed else { return }
        owe([BacklogPacket(packet: OutgoingPacket(header: PacketHeader(kind: .abandoned, asks: token)))])
    }

    /// Says that the port at this end is gone, while it still owes replies. Never waits: without room in the connection it
    /// is said before the next reply.
    func sayPortHasEnded() {
        if isInherited { return }
        owe([BacklogPacket(packet: OutgoingPacket(header: PacketHeader(kind: .portEnded)))])
    }

    /// Has packets sent now, before the next message, or when there is room. A peer for which too much waits so reads
    /// nothing: it would have this process keep ever more for it, so the connection ends.
    func owe(_ packets: [BacklogPacket]) {
        if oweIfAllowed(packets) { return sendOverdue() }
        endBecauseUnread()
        for packet in packets { if let token = packet.settles { didSettleReply(to: token) } }
    }

    /// - Returns: false when too much is overdue already.
    func oweIfAllowed(_ packets: [BacklogPacket]) -> Bool {
        let limit = port == nil ? Self.overdueLimit : Self.overdueReplyLimit
        return overdue.withLock { overdue in
            if overdue.size > limit { return false }
            for packet in packets { overdue.append(packet) }
            return true
        }
    }

    /// The peer reads nothing of what it is sent.
    func endBecauseUnread() {
        close(PortError(.peerNotReading))
        dropOverdue()
    }

    /// When the kernel has no memory for a packet, too many descriptors are under way, or there is none to wait with, it is
    /// asked again after this time.
    private static let timeUntilRetry = Duration.milliseconds(10)

    /// Sends what is overdue as far as there is room. Never waits; when another thread is sending, it does this afterwards.
    /// Who has had the turn calls this, for it may have sent what was overdue before its own: the peer is read again then.
    func sendOverdue() {
        while !overdue.isQuiet, !isClosed {
            let (isEmpty, isPausing) = overdue.withLock { ($0.isEmpty, $0.isPausing) }
            if isEmpty { return isPausing ? resumeReading() : () }
            guard turn.takeIfFree() else { return }
            let outcome = Result { () throws(PortError) in try proceedWithOverdue() }
            turn.give()
            switch outcome {
            case .success(true): continue
            // A peer that reads nothing any more always has room: waiting for it would never end.
            case .failure(let failure) where failure.code == .deadName: return dropOverdue()
            case .success(false): return awaitRoomForOverdue()
            // The peer broke the format, say.
            case .failure where isClosed: return dropOverdue()
            case .failure: return awaitRoomForOverdue(orAfter: Self.timeUntilRetry)
            }
        }
    }

    /// There is no room for what is overdue. The shared thread sends it when there is; at the port's end it is started for
    /// that, and without it whoever receives for the port does. At the right's end what is overdue goes, without it, before
    /// the next message, or when something is received.
    ///
    /// - Parameter pause: after a failure, how long to wait instead: there may be room, so waiting for it would end at once.
    func awaitRoomForOverdue(orAfter pause: Duration? = nil) {
        guard port != nil else {
            if let loop = IOThread.startedLoop { watchRoomForOverdue(on: loop, orAfter: pause) }
            return
        }
        let isPausing = overdue.withLock { overdue in
            if !overdue.isEmpty { overdue.isPausing = true }
            return !overdue.isEmpty
        }
        // Another thread has sent it meanwhile. Whichever of the two is first has the peer read again.
        guard isPausing else { return resumeReading() }
        chargeOverdue()
        if let loop = try? IOThread.loop() { watchRoomForOverdue(on: loop, orAfter: pause) }
        updateInterest()
    }

    private func watchRoomForOverdue(on loop: ThreadRunLoop, orAfter pause: Duration?) {
        let isWatched = overdue.withLock { overdue in
            defer { overdue.isWatched = true }
            return overdue.isWatched
        }
        if isWatched { return }
        // A port that has ended keeps its connections no more, but what it owes is still to be sent.
        let owner = port == nil ? nil : self
        func retry(after pause: Duration) {
            loop.add(
                RunLoopTimer(after: pause) { [weak self, owner] _ in
                    withExtendedLifetime(owner) { self?.roomDidCome() }
                })
        }
        if let pause { return retry(after: pause) }
        do {
            try IOThread.rooms().wait(for: self)
        } catch {
            // It cannot be waited for: at the port's end, from which nobody may look any more, it is tried anew.
            if owner != nil { return retry(after: Self.timeUntilRetry) }
            overdue.withLock { $0.isWatched = false }
        }
    }

    /// Called when there may be room, once for each wait.
    func roomDidCome() {
        overdue.withLock { $0.isWatched = false }
        sendOverdue()
    }

    /// Drops what is overdue: nobody is there to read it.
    private func dropOverdue() {
        var dropped = overdue.withLock { overdue in
            var rest = SendBacklog(isWatched: overdue.isWatched, isOver: overdue.isOver)
            swap(&rest, &overdue)
            return rest
        }
        dropped.charge = nil
        if dropped.isPausing { updateInterest() }
        while let packet = dropped.packets.popFirst() { if let token = packet.settles { didSettleReply(to: token) } }
    }

    /// What was overdue has been sent: the peer is read again.
    func resumeReading() {
        // The account first: it is right before the peer is read again.
        _ = overdue.withLock { $0.isPausing && $0.isEmpty ? $0.charge.take() : nil }
        var charge: PeerCharge?
        let wasPausing = overdue.withLock { overdue in
            guard overdue.isPausing, overdue.isEmpty else { return false }
            overdue.isPausing = false
            swap(&charge, &overdue.charge)
            return true
        }
        charge = nil  // another thread has charged meanwhile; it goes without the lock
        if wasPausing { updateInterest() }
    }

    /// Charges the peer's process for what it has not read.
    private func chargeOverdue() {
        guard let ledger = ledger(of: port?.object) else { return }
        let cost = overdue.withLock { ResourceUsage(bytes: $0.size, descriptors: $0.descriptorCount) }
        var charge: PeerCharge? = ledger.charge(owner, forUnread: cost)
        overdue.withLock { if $0.isPausing { swap(&charge, &$0.charge) } }
        charge = nil  // the old one, or that for what was sent meanwhile, goes without the lock
    }
}
