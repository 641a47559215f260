// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message larger than a packet goes in several, all in one turn. If the deadline comes between two pieces, the rest is
// never sent; an abort packet goes before whatever is sent next. Small notices that find no room are overdue: they go
// before the next message, or when the socket has room.

package import PortSystem
import Synchronization

extension SocketConnection {
    /// Sends a message, waiting for room until the deadline.
    ///
    /// - Parameters:
    ///   - message: the message. If it has a reply right, the reply is awaited here.
    ///   - token: the token of the message that it answers; zero for a message to the port.
    ///   - deadline: a past moment still sends when there is room.
    /// - Throws: ``PortError`` when the message was not sent as a whole: it passes a limit, the deadline came, the kernel
    ///   failed, or the other end is gone. Then no reply to it is awaited.
    package func send(_ message: MachMessage, answering token: UInt64 = 0, until deadline: MonotonicInstant)
        throws(PortError)
    {
        try checkProcess()
        let encoded = try EncodedMessage(message)
        let asks = try expectReply(for: message.replyTarget)
        do throws(PortError) {
            try transmit(encoded, asks: asks, answers: token, until: deadline)
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
        overdue.withLock { $0.packets.append(OverduePacket(header: header, settles: token)) }
        sendOverdue()
    }

    /// Answers the message that asked with `token` with an error, which settles it. Never waits.
    func failReply(to token: UInt64, code: Int32, text: String) {
        let header = PacketHeader(kind: .replyFailed, messageID: code, answers: token)
        let packet = OverduePacket(header: header, payload: Array(text.utf8)[...], settles: token)
        overdue.withLock { $0.packets.append(packet) }
        sendOverdue()
    }

    /// Says that nobody waits any more for the reply to the message that asked with `token`. Never waits: without room in
    /// the connection it is said before the next message.
    func giveUp(token: UInt64) {
        guard !isInherited, takeAwaited(token) != nil, !isClosed else { return }
        overdue.withLock { $0.packets.append(OverduePacket(header: PacketHeader(kind: .abandoned, asks: token))) }
        sendOverdue()
    }

    /// Sends a reply that has come from another process, now or when there is room. Never waits: the thread that received
    /// it has other things to do. The request is settled once the whole reply has been sent.
    ///
    /// - Parameters:
    ///   - message: the reply.
    ///   - token: the token that came with the request.
    /// - Throws: ``PortError`` when it passes a limit, or the connection has ended.
    func handOn(_ message: MachMessage, answering token: UInt64) throws(PortError) {
        if isClosed { throw PortError(.deadName) }
        let encoded = try EncodedMessage(message)
        let asks = try expectReply(for: message.replyTarget)
        var packets = [
            OverduePacket(
                header: Self.header(encoded, asks: asks, answers: token),
                payload: encoded.payload.prefix(PacketHeader.payloadLimit), descriptors: encoded.descriptors)
        ]
        for start in stride(from: PacketHeader.payloadLimit, to: encoded.payload.count, by: PacketHeader.payloadLimit) {
            let piece = encoded.payload[start...].prefix(PacketHeader.payloadLimit)
            packets.append(OverduePacket(header: PacketHeader(kind: .continuation), payload: piece))
        }
        packets[packets.count - 1].settles = token
        overdue.withLock { $0.packets += packets }
        if asks != 0 { didSend(token: asks) }
        sendOverdue()
    }

    /// The head of a message's first packet.
    private static func header(_ message: EncodedMessage, asks: UInt64, answers: UInt64) -> PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(message.descriptors.count), messageID: message.id,
            componentCount: UInt32(message.componentCount), asks: asks, answers: answers,
            totalLength: UInt64(message.payload.count))
    }

    /// Sends what is overdue as far as there is room. Never waits; when another thread is sending, it does this afterwards.
    func sendOverdue() {
        while !isClosed, overdue.withLock({ $0.needsAbort || !$0.packets.isEmpty }) {
            guard turn.take(until: .distantPast) else { return }
            let failure = overdueFailure()
            turn.give()
            guard let failure else { continue }
            // A peer that reads nothing any more always has room: waiting for it would never end.
            if failure.code == .deadName { return dropOverdue() }
            return port?.object?.sockets?.awaitRoom(self) ?? ()
        }
    }

    /// Drops what is overdue: nobody is there to read it.
    private func dropOverdue() {
        let dropped = overdue.withLock { overdue in
            defer { overdue = Overdue() }
            return overdue.packets
        }
        for packet in dropped { if let token = packet.settles { didSettleReply(to: token) } }
    }

    /// Sends what is overdue as far as there is room; the caller has the turn.
    ///
    /// - Returns: what kept the rest from being sent; nil when nothing is left.
    private func overdueFailure() -> PortError? {
        do throws(PortError) {
            try transmitOverdue(until: .distantPast)
            return nil
        } catch {
            return error
        }
    }

    private func transmit(
        _ message: EncodedMessage, asks: UInt64, answers: UInt64, until deadline: MonotonicInstant
    ) throws(PortError) {
        guard turn.take(until: deadline) else { throw PortError(.sendTimedOut) }
        defer {
            turn.give()
            sendOverdue()
        }
        try transmitOverdue(until: deadline)
        let first = message.payload.prefix(PacketHeader.payloadLimit)
        try transmit(Self.header(message, asks: asks, answers: answers), first, message.descriptors, until: deadline)
        var position = first.count
        while position < message.payload.count {
            let piece = message.payload[position...].prefix(PacketHeader.payloadLimit)
            do throws(PortError) {
                try transmit(PacketHeader(kind: .continuation), piece, [], until: deadline)
            } catch {
                overdue.withLock { $0.needsAbort = true }
                throw error
            }
            position += piece.count
        }
    }

    /// Sends what is overdue; the caller has the turn.
    private func transmitOverdue(until deadline: MonotonicInstant) throws(PortError) {
        if overdue.withLock({ $0.needsAbort }) {
            try transmit(PacketHeader(kind: .abort), [], [], until: deadline)
            overdue.withLock { $0.needsAbort = false }
        }
        while let packet = overdue.withLock({ $0.packets.first }) {
            try transmit(packet.header, packet.payload, packet.descriptors, until: deadline)
            overdue.withLock { _ = $0.packets.removeFirst() }
            if let token = packet.settles { didSettleReply(to: token) }
        }
    }

    /// Sends one packet; the caller has the turn.
    private func transmit(
        _ header: PacketHeader, _ payload: ArraySlice<UInt8>, _ descriptors: [SharedDescriptor],
        until deadline: MonotonicInstant
    ) throws(PortError) {
        while true {
            switch try offer(header, payload, descriptors) {
            case .sent: return
            case .peerClosed: throw peerDidClose()
            case .wouldBlock:
                if deadline <= .now { throw PortError(.sendTimedOut) }
                try waitForRoom(until: deadline)
            }
        }
    }

    private func offer(_ header: PacketHeader, _ payload: ArraySlice<UInt8>, _ descriptors: [SharedDescriptor])
        throws(PortError) -> SendOutcome
    {
        if isClosed { return .peerClosed }
        do throws(SystemError) {
            return try sysSendPacket(
                descriptor.rawValue, head: header.encoded, body: payload, descriptors: descriptors)
        } catch {
            throw PortError(error)
        }
    }

    private func waitForRoom(until deadline: MonotonicInstant) throws(PortError) {
        do throws(SystemError) {
            _ = try sysPoll(descriptor.rawValue, .writable, until: deadline)
        } catch {
            throw PortError(error)
        }
    }

    /// The peer is gone: what it said last tells why, for example that it does not talk to us.
    private func peerDidClose() -> PortError {
        receiveUnlessReceiving()
        let failure = state.withLock { state in
            state.isDeadName = true
            return state.failure
        }
        guard let failure, failure.code != .peerDied else { return PortError(.deadName) }
        return failure
    }
}
