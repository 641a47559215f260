// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A packet that is a whole message for the port, of one part, bytes, which answers nothing and wants no answer: most are
/// so. It is told by its head and the head of its one record alone.
struct PlainPacket {
    /// What the message is about.
    let id: Int32
    let front: PacketFront

    /// What it takes up in the account of its process.
    var cost: PeerCost { PeerCost(messages: 1, bytes: front.payloadSize) }

    /// - Returns: nil when it is another packet, or none.
    init?(_ front: PacketFront?) {
        guard let front, let header = PacketHeader(front.head), header.kind == .message, header.descriptorCount == 0,
            header.componentCount == 1, header.asks == 0, header.answers == 0,
            header.totalLength == UInt64(front.payloadSize),
            UInt64(littleEndian: front.lead) == RecordKind.bytes.head(front.payloadSize - RecordKind.headSize)
        else { return nil }
        id = header.messageID
        self.front = front
    }
}

extension RecordReader {
    /// Looks at the plain packets that come next, which stay in the ring.
    ///
    /// - Parameters:
    ///   - packets: set to what is found.
    ///   - limit: the most packets.
    ///   - size: it ends with the packet that reaches so many bytes.
    mutating func seePlain(_ packets: inout [PlainPacket], atMost limit: Int, size: Int) {
        packets.removeAll(keepingCapacity: true)
        var seen = 0
        while packets.count < limit, seen < size, let packet = PlainPacket(front(behind: seen)) {
            packets.append(packet)
            seen += packet.front.recordSize
        }
    }
}
