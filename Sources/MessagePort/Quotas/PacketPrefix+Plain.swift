// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A plain packet is a whole message for the port, of one part, bytes, which answers nothing and wants no answer: most are
// so. It is told by its head and the head of its one record alone.

import PortSystem

extension PacketPrefix {
    /// What its head begins with.
    private static let plainHead = PacketHeader(kind: .message, componentCount: 1).words

    /// Whether it is that of a plain packet.
    var isPlainMessage: Bool {
        let plain = Self.plainHead
        return head.0 == plain.0 && UInt64(littleEndian: head.1) >> 32 == 1 && head.2 == 0 && head.3 == 0
            && UInt64(littleEndian: head.4) == UInt64(payloadSize)
            && UInt64(littleEndian: lead) == ComponentKind.bytes.head(payloadSize - ComponentKind.headSize)
    }

    /// What the message is about.
    var messageID: Int32 { Int32(truncatingIfNeeded: UInt64(littleEndian: head.1)) }

    /// How many bytes the message has.
    var byteCount: Int { payloadSize - ComponentKind.headSize }

    /// What it takes up in the account of its process.
    var cost: ResourceUsage {
        ResourceUsage(messages: 1, bytes: payloadSize + ResourceUsage.message + ResourceUsage.component)
    }
}

extension RingConsumer {
    /// Looks at the plain packets that come next, which stay in the ring.
    ///
    /// - Parameters:
    ///   - packets: set to what is found.
    ///   - limit: the most packets.
    ///   - size: it ends with the packet that reaches so many bytes.
    mutating func seePlain(_ packets: inout [PacketPrefix], atMost limit: Int, size: Int) {
        seeFronts(&packets, atMost: limit, size: size) { $0.isPlainMessage }
    }
}
