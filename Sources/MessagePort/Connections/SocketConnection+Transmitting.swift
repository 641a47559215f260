// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A message on its way: what of it the kernel has taken.
struct Transmission: ~Copyable, Sendable {
    private let message: OutgoingMessage
    /// The token that asks for a reply; zero when none is wanted.
    private let asks: UInt64
    /// The token of the message that it answers; zero for a message to the port.
    private let answers: UInt64
    private var sentCount = 0
    /// Whether the first packet was sent.
    private(set) var isBegun = false

    /// A message of which nothing was sent.
    init(_ message: consuming OutgoingMessage, asks: UInt64, answers: UInt64) {
        self.message = message
        self.asks = asks
        self.answers = answers
    }

    var isDone: Bool { isBegun && sentCount == message.size }

    /// The head of the first packet.
    private var header: PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(message.descriptors.count), messageID: message.id,
            componentCount: UInt32(message.componentCount), asks: asks, answers: answers,
            totalLength: UInt64(message.size))
    }

    /// How much is still to be sent.
    var restSize: Int { message.size - sentCount }

    /// The packet that comes next, with a piece of limited size.
    func next(atMost limit: Int = PacketHeader.payloadLimit) -> OutgoingPacket {
        isBegun
            ? message.packet(PacketHeader(kind: .continuation), at: sentCount, atMost: limit)
            : message.packet(header, at: 0, atMost: limit, message.descriptors)
    }

    /// The kernel has taken a packet with so many bytes of the payload.
    mutating func advance(by size: Int) {
        sentCount += size
        isBegun = true
    }
}

extension SocketConnection {
    /// Sends a message that is bytes alone, not large, and wants no answer, as most are, if the turn is free. Where there is
    /// room in the ring it costs a third of what the other way takes, which is for every message.
    ///
    /// - Returns: whether it was sent; not when it is too large, or the turn is not free.
    /// - Throws: as `send`.
    func sendPlain(
        _ bytes: [UInt8], id: Int32, answering token: UInt64, until deadline: SendDeadline
    ) throws(PortError) -> Bool {
        let size = ComponentKind.headSize + bytes.count
        guard size <= Self.ringPieceLimit, turn.takeIfFree() else { return false }
        let header = PacketHeader(
            kind: .message, messageID: id, componentCount: 1, answers: token, totalLength: UInt64(size))
        let lead = ComponentKind.bytes.head(bytes.count).littleEndian
        var waiting: Transmission?
        do throws(PortError) {
            if overdue.isQuiet, !isClosed,
                let notice = sendingLane.withLock({ $0.writePlain(header.words, lead: lead, bytes) })
            {
                didSend(size)
                try follow(notice)
            } else if try !offerPlain(OutgoingPacket(header: header, lead: lead, tail: bytes[...])) {
                waiting = Transmission(OutgoingMessage(id: id, bytes: bytes), asks: 0, answers: token)
            }
        } catch {
            endTurn()
            throw error
        }
        if var waiting = waiting.take() { try finish(&waiting, until: deadline) } else { endTurn() }
        return true
    }

    /// Sends what is overdue, and then a packet that is a whole message. The caller has the turn.
    ///
    /// - Returns: false when there is no room.
    private func offerPlain(_ packet: OutgoingPacket) throws(PortError) -> Bool {
        guard try proceedWithOverdue() else { return false }
        offerRings()
        guard try offer(packet) else { return false }
        didSend(packet.payloadSize)
        return true
    }

    /// Who has the turn has sent so many bytes.
    private func didSend(_ size: Int) {
        sentByteCount.store(sentByteCount.load(ordering: .relaxed) &+ size, ordering: .relaxed)
    }

    /// Sends a message in its turn, waiting for both the turn and room until the deadline. With a past one it still waits
    /// for senders that find room: those who are in the middle of sending are no reason to say that there is none.
    func transmit(_ message: inout Transmission, until deadline: SendDeadline) throws(PortError) {
        var deadline = deadline
        if !turn.takeIfFree() {
            let instant = deadline.fix()
            let hasTurn = instant <= .now ? turn.takeUnlessHeldUp() : turn.take(until: instant)
            if !hasTurn { throw PortError(.sendTimedOut) }
        }
        try finish(&message, until: deadline)
    }

    /// Sends a message, waiting for room. The caller has the turn, which ends with this.
    private func finish(_ message: inout Transmission, until deadline: SendDeadline) throws(PortError) {
        var deadline = deadline
        defer { endTurn() }
        do throws(PortError) {
            while try !proceed(&message) {
                let instant = deadline.fix()
                if instant <= .now { throw PortError(.sendTimedOut) }
                turn.holdUp()
                defer { turn.goOn() }
                try waitForRoom(until: instant)
            }
        } catch {
            abort(message)
            throw error
        }
    }

    /// As above, in a task. The turn is the task's while it is suspended.
    nonisolated(nonsending) func transmit(
        _ message: inout Transmission, waiting wait: SendWait
    ) async throws(PortError) {
        try await turn.take(waiting: wait)
        defer { endTurn() }
        do throws(PortError) {
            while try !proceed(&message) {
                turn.holdUp()
                defer { turn.goOn() }
                try await waitForRoom(wait)
            }
        } catch {
            abort(message)
            throw error
        }
    }

    private func endTurn() {
        turn.give()
        sendOverdue()
    }

    /// The rest of a message will never be sent: if it was begun, the peer has to know.
    func abort(_ message: borrowing Transmission) {
        if message.isBegun { overdue.withLock { $0.needsAbort = true } }
    }

    /// Sends as much of a message as there is room for, and what is overdue before it. The caller has the turn.
    ///
    /// - Returns: whether all was sent; false when there is no room for the rest.
    func proceed(_ message: inout Transmission) throws(PortError) -> Bool {
        // What becomes overdue between two pieces waits: pieces of one message follow each other.
        if !message.isBegun {
            if try !proceedWithOverdue() { return false }
            offerRings()
        }
        while !message.isDone {
            let packet = message.next(atMost: pieceLimit(for: message))
            guard try offer(packet) else { return false }
            let size = packet.payloadSize
            message.advance(by: size)
            didSend(size)
        }
        return true
    }

    /// A large message goes through a ring in pieces of which several find room, so that the reader copies one out while
    /// the next is written.
    private static var ringPieceLimit: Int { SharedRing.capacity / 8 - PacketHeader.size - 8 }

    private func pieceLimit(for message: borrowing Transmission) -> Int {
        guard message.restSize > Self.ringPieceLimit, sendingLane.withLock({ $0.usesRing }) else {
            return PacketHeader.payloadLimit
        }
        return Self.ringPieceLimit
    }

    /// Sends as much of what is overdue as there is room for. The caller has the turn.
    ///
    /// - Returns: whether all was sent.
    func proceedWithOverdue() throws(PortError) -> Bool {
        if overdue.isQuiet { return true }
        if overdue.withLock({ $0.needsAbort }) {
            guard try offer(OutgoingPacket(header: PacketHeader(kind: .abort))) else { return false }
            overdue.withLock { $0.needsAbort = false }
        }
        while let next = overdue.withLock({ $0.packets.first }) {
            guard try offer(next.packet) else { return false }
            _ = overdue.withLock { $0.popFirst() }
            if let token = next.settles { didSettleReply(to: token) }
        }
        return true
    }

    /// Offers one packet to the kernel. The caller has the turn.
    ///
    /// - Returns: false when there is no room.
    func offerToSocket(_ packet: OutgoingPacket) throws(PortError) -> Bool {
        let outcome: SendOutcome
        do throws(SystemError) {
            outcome = try sysSendPacket(
                descriptor.rawValue, head: packet.header.words, lead: packet.lead, body: packet.payload,
                tail: packet.tail, descriptors: packet.descriptors)
        } catch {
            throw PortError(error)
        }
        switch outcome {
        case .sent: return true
        case .wouldBlock: return false
        case .peerClosed: throw peerDidClose()
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
    func peerDidClose() -> PortError {
        receiveUnlessReceiving()
        otherPortDidEnd()
        let failure = state.withLock { $0.failure }
        guard var failure, failure.code != .peerDied, failure.code != .deadName else { return PortError(.deadName) }
        failure.knownDelivery = nil  // what is known of other messages
        return failure
    }
}
