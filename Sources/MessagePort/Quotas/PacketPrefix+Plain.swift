// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A plain packet is a whole message for the port, of one part, bytes, which answers nothing and wants no answer: most
// are. The heads of the packet and of its one record suffice to recognise it.

import PortSystem

extension PacketPrefix {
    /// The beginning of its head.
    private static let plainHead = PacketHeader(kind: .message, componentCount: 1).words

    /// Whether it is the prefix of a plain packet.
    var isPlainMessage: Bool {
        let plain = Self.plainHead
        return head.0 == plain.0 && UInt64(littleEndian: head.1) >> 32 == 1 && head.2 == 0 && head.3 == 0
            && UInt64(littleEndian: head.4) == UInt64(payloadSize)
            && UInt64(littleEndian: lead) == ComponentKind.bytes.head(payloadSize - ComponentKind.headSize)
    }

    /// The message id.
    var messageID: Int32 { Int32(truncatingIfNeeded: UInt64(littleEndian: head.1)) }

    /// How many bytes the message has.
    var byteCount: Int { payloadSize - ComponentKind.headSize }

    /// Its charge to the account of its process.
    var cost: ResourceUsage {
        ResourceUsage(messages: 1, bytes: payloadSize + ResourceUsage.message + ResourceUsage.component)
    }
}

extension RingConsumer {
    /// Peeks at the next plain packets, which stay in the ring.
    ///
    /// - Parameters:
    ///   - packets: set to the packets found.
    ///   - limit: the most packets.
    ///   - size: it ends with the packet that reaches this many bytes.
    mutating func peekPlain(_ packets: inout [PacketPrefix], atMost limit: Int, size: Int) {
        peekPrefixes(&packets, atMost: limit, size: size) { $0.isPlainMessage }
    }
}
