// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The fixed head of every packet, 40 bytes, numbers in little-endian order. Docs/WireFormat.md is its specification.
//
//   0 magic "MPRT"   4 version   5 kind   6 descriptor count (16 bits)   8 message id   12 component count
//   16 asks: the token for a reply, zero when none is wanted   24 answers: the token of the message that this replies to
//   32 length of the whole message's payload

/// What a packet is.
enum PacketKind: UInt8, CaseIterable, Sendable {
    /// The first packet of a message: to the port, or, when it answers a token, to whoever asked.
    case message = 1
    /// A further piece of the message that was begun.
    case continuation = 2
    /// The message that asked with the token will not be answered; the message id holds an error code, or zero when its
    /// receiver let the reply right go.
    case replyDropped = 3
    /// The message that was begun will not be finished.
    case abort = 4
    /// The listener does not talk to this client; the message id holds the error code.
    case refused = 5
    /// The message that asked with the token is answered with an error: the message id is the receiver's own number, the
    /// payload its text.
    case replyFailed = 6
    /// Nobody waits any more for a reply to the message that asked with the token.
    case abandoned = 7
    /// The port is gone, but owes replies, which will still come.
    case portEnded = 8
    /// From the right's end: how is the port? From the port's end, under the token of that: so; the payload are numbers.
    case statistics = 9
    /// From the right's end: show me the messages that are taken. From the port's end: so it is, or not, or no more.
    case watch = 10
    /// The head of a message that was taken, and the beginning of its bytes.
    case shown = 11

    /// Whether the token in `answers` means something.
    var mayAnswer: Bool { self == .message || self == .replyDropped || self == .replyFailed }
}

struct PacketHeader: Hashable, Sendable {
    static let size = 40
    static let magic: [UInt8] = Array("MPRT".utf8)
    static let version: UInt8 = 1
    /// The largest packet, head and payload together.
    static let packetLimit = 65_536
    /// The largest payload of one packet.
    static let payloadLimit = packetLimit - size

    var kind: PacketKind
    var descriptorCount: UInt16 = 0
    var messageID: Int32 = 0
    var componentCount: UInt32 = 0
    var asks: UInt64 = 0
    var answers: UInt64 = 0
    var totalLength: UInt64 = 0
}

extension PacketHeader {
    /// The 40 bytes.
    var encoded: [UInt8] {
        var bytes = Self.magic + [Self.version, kind.rawValue]
        bytes.reserveCapacity(Self.size)
        bytes.append(littleEndian: descriptorCount)
        bytes.append(littleEndian: UInt32(bitPattern: messageID))
        bytes.append(littleEndian: componentCount)
        bytes.append(littleEndian: asks)
        bytes.append(littleEndian: answers)
        bytes.append(littleEndian: totalLength)
        return bytes
    }

    /// Reads a head; nil when the packet is shorter than a head or not of this format and version.
    init?(_ packet: [UInt8]) {
        guard packet.count >= Self.size, packet.starts(with: Self.magic), packet[4] == Self.version,
            let kind = PacketKind(rawValue: packet[5])
        else { return nil }
        self.kind = kind
        descriptorCount = packet.littleEndian(at: 6)
        messageID = Int32(bitPattern: packet.littleEndian(at: 8))
        componentCount = packet.littleEndian(at: 12)
        asks = packet.littleEndian(at: 16)
        answers = packet.littleEndian(at: 24)
        totalLength = packet.littleEndian(at: 32)
    }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger>(littleEndian number: Number) {
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: number >> Number(shift)))
        }
    }

    func littleEndian<Number: FixedWidthInteger>(at offset: Int) -> Number {
        (0..<Number.bitWidth / 8).reduce(0) { $0 | Number(truncatingIfNeeded: self[offset + $1]) << (8 * $1) }
    }
}
