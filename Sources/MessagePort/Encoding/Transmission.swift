// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A message that is being sent: how much of it the kernel has accepted.
struct Transmission: ~Copyable, Sendable {
    private let message: OutgoingMessage
    /// The token that asks for a reply; zero when none is wanted.
    let asks: UInt64
    /// The token of the message that it answers; zero for a message to the port.
    private let answers: UInt64
    /// When it is confirmed; nil for a message that asks for a reply, or for nothing.
    let confirmation: SendConfirmation?
    private var sentCount = 0
    private var sentDescriptorCount = 0
    /// Whether the first packet was sent.
    private(set) var isBegun = false

    /// A message that asks for a reply, or for a confirmation, or for neither.
    init(
        _ message: consuming OutgoingMessage, asks: UInt64, answers: UInt64, confirming: SendConfirmation? = nil
    ) {
        self.message = message
        self.asks = asks
        self.answers = answers
        confirmation = asks == 0 || answers != 0 ? nil : confirming
    }

    var isDone: Bool { isBegun && sentCount == message.size }

    /// Whether it is for the port, and answers nothing.
    var isForPort: Bool { answers == 0 }

    /// Whether it is the one that waits for a grant, or is sent with it.
    var isFirstInLine = false

    /// Whether its sender holds the line of large messages.
    var isInTurn = false

    /// Whether others may be sent between its pieces.
    var mayBeDivided: Bool { isInTurn && isForPort }

    /// Whether it takes several packets of at most this many bytes.
    func isLarge(_ limit: Int) -> Bool {
        message.size > limit || message.isDivided || message.descriptors.count > packetDescriptorLimit
    }

    /// Whether it may be sent whole between the pieces of another.
    func fits(_ allowance: PieceAllowance) -> Bool {
        isForPort && message.descriptors.isEmpty && costBetweenPieces <= allowance.bytes
    }

    var costBetweenPieces: Int { PieceAllowance.cost(message.size, components: message.componentCount) }

    private var header: PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(message.descriptors.count), messageID: message.id,
            componentCount: UInt32(message.componentCount), asks: asks, answers: answers,
            totalLength: UInt64(message.size), confirmation: confirmation)
    }

    var restSize: Int { message.size - sentCount }

    /// What is lent with it.
    var loans: [LentMemory] { message.loans }

    func next(atMost limit: Int = PacketHeader.payloadLimit) -> OutgoingPacket {
        // Most are one packet: this is the same, with less to compute.
        if !isBegun, message.size <= limit, message.descriptors.isEmpty, !message.isDivided {
            return OutgoingPacket(
                header: header, firstWord: message.firstWord, payload: message.records[...], tail: message.tail[...])
        }
        let unsent = message.descriptors.dropFirst(sentDescriptorCount)
        let descriptors =
            unsent.count == message.descriptors.count && unsent.count <= packetDescriptorLimit
            ? message.descriptors : Array(unsent.prefix(packetDescriptorLimit))
        let header =
            isBegun
            ? PacketHeader(kind: .continuation, descriptorCount: UInt16(descriptors.count)) : header
        // The other descriptors need packets, too, each with a part of the payload, which has eight bytes for each one.
        let packetsAfterwards = (unsent.count - descriptors.count + packetDescriptorLimit - 1) / packetDescriptorLimit
        return message.packet(
            header, at: sentCount, atMost: min(limit, max(restSize - packetsAfterwards, 1)), descriptors)
    }

    /// The kernel has accepted the packet that is the next one.
    mutating func advance(by packet: OutgoingPacket) {
        sentCount += packet.payloadSize
        sentDescriptorCount += packet.descriptors.count
        isBegun = true
    }

    /// Removes the packets that are not sent yet, in order, for the backlog. The last of them settles the token.
    mutating func rest(settling token: UInt64) -> [OutgoingPacket] {
        var packets: [OutgoingPacket] = []
        while !isDone {
            var packet = next()
            advance(by: packet)
            if isDone { packet.settles = token }
            packets.append(packet)
        }
        return packets
    }
}
