// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What a tap gets of a message that was dequeued.
package struct TappedMessage: Hashable, Sendable {
    /// The message's number among those dequeued while the port was tapped; a missing number is a message that was
    /// left out.
    package var number: UInt64
    package var id: Int32
    package var componentCount: Int
    /// How many bytes its byte components have.
    package var byteCount: Int
    /// The process that sent it.
    package var sender: Int32
    package var expectsReply: Bool
    /// The beginning of its first byte component.
    package var bytes: [UInt8]

    /// The most bytes of a message that a tap is shown.
    package static let byteLimit = 4096
    /// What precedes the bytes in the payload: the process, and 1 when a reply is expected.
    private static let prefixSize = 8

    init(_ message: MachMessage, number: UInt64, byteLimit: Int) {
        self.number = number
        id = message.id
        componentCount = message.parts.count
        byteCount = message.parts.byteCount
        sender = message.sender.processID
        expectsReply = message.expectsReply
        bytes = Array(message.bytes.prefix(min(byteLimit, Self.byteLimit)))
    }

    var packet: OutgoingPacket {
        let header = PacketHeader(
            kind: .shown, messageID: id, componentCount: UInt32(clamping: componentCount), asks: number,
            totalLength: UInt64(byteCount))
        var payload: [UInt8] = []
        payload.append(littleEndian: UInt32(bitPattern: sender))
        payload.append(littleEndian: UInt32(expectsReply ? 1 : 0))
        return OutgoingPacket(header: header, payload: (payload + bytes)[...])
    }

    init?(_ header: PacketHeader, payload: [UInt8]) {
        guard (Self.prefixSize...Self.prefixSize + Self.byteLimit).contains(payload.count), header.asks > 0 else {
            return nil
        }
        number = header.asks
        id = header.messageID
        componentCount = Int(header.componentCount)
        byteCount = Int(clamping: header.totalLength)
        sender = Int32(bitPattern: payload.littleEndian(at: 0))
        let flags: UInt32 = payload.littleEndian(at: 4)
        expectsReply = flags & 1 == 1
        bytes = Array(payload.dropFirst(Self.prefixSize))
    }
}
