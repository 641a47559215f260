// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The fixed head of every packet, 32 bytes, numbers in little-endian order. Docs/WireFormat.md is its specification.
//
//   0  magic "MPRT"      4  version         5  kind           6  descriptor count (16 bits)
//   8  message id        12 component count 16 token (64 bits) 24 payload length of the whole message (64 bits)

/// What a packet is.
enum PacketKind: UInt8, CaseIterable, Sendable {
    /// The first packet of a message to the port; its token, unless zero, asks for a reply.
    case message = 1
    /// The first packet of the reply to the message with that token.
    case reply = 2
    /// A further piece of the message or reply that was begun.
    case continuation = 3
    /// The message with that token will not be replied to.
    case replyDropped = 4
    /// The message or reply that was begun will not be finished.
    case abort = 5
    /// The listener does not talk to this client; the message id holds the error code.
    case refused = 6
}

struct PacketHeader: Hashable, Sendable {
    static let size = 32
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
    var token: UInt64 = 0
    var totalLength: UInt64 = 0
}

extension PacketHeader {
    /// The 32 bytes.
    var encoded: [UInt8] {
        var bytes = Self.magic + [Self.version, kind.rawValue]
        bytes.reserveCapacity(Self.size)
        bytes.append(littleEndian: descriptorCount)
        bytes.append(littleEndian: UInt32(bitPattern: messageID))
        bytes.append(littleEndian: componentCount)
        bytes.append(littleEndian: token)
        bytes.append(littleEndian: totalLength)
        return bytes
    }

    /// Reads a head; nil when the packet is shorter than a head or not of this format and version.
    init?(_ packet: UnsafeRawBufferPointer) {
        // SAFETY: the length is checked first, and every load is within those 32 bytes.
        guard packet.count >= Self.size, unsafe packet.prefix(4).elementsEqual(Self.magic), unsafe packet[4] == Self.version,
            let kind = PacketKind(rawValue: unsafe packet[5])
        else { return nil }
        self.kind = kind
        descriptorCount = unsafe UInt16(littleEndian: packet.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
        messageID = unsafe Int32(littleEndian: packet.loadUnaligned(fromByteOffset: 8, as: Int32.self))
        componentCount = unsafe UInt32(littleEndian: packet.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        token = unsafe UInt64(littleEndian: packet.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        totalLength = unsafe UInt64(littleEndian: packet.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
    }
}

extension [UInt8] {
    mutating func append(littleEndian number: some FixedWidthInteger) {
        // SAFETY: the bytes of an integer, as long as the closure runs.
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
    }
}
