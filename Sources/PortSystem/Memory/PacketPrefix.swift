// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The first 40 bytes of a packet, as five numbers in memory order.
package typealias PacketWords = (UInt64, UInt64, UInt64, UInt64, UInt64)

/// The 40 bytes.
package func bytes(of words: PacketWords) -> [UInt8] {
    unsafe withUnsafeBytes(of: words) { unsafe Array($0) }
}

/// The first 40 bytes as words; nil when there are fewer.
package func packetWords(of bytes: [UInt8]) -> PacketWords? {
    if bytes.count < MemoryLayout<PacketWords>.size { return nil }
    return unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(as: PacketWords.self) }
}

/// The beginning of a packet in a ring, copied out of it.
package struct PacketPrefix: Sendable {
    package let head: PacketWords
    /// The first eight bytes of its payload, in memory order.
    package let lead: UInt64
    /// The size of its payload: at least eight bytes.
    package let payloadSize: Int
    /// The number of bytes of its record in the ring.
    package var recordSize: Int { 8 + padded(40 + payloadSize) }

    package init(head: PacketWords, lead: UInt64, payloadSize: Int) {
        (self.head, self.lead, self.payloadSize) = (head, lead, payloadSize)
    }
}
