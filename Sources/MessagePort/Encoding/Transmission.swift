// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

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
