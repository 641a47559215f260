// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Sixty-four bytes, the payload of a small message.
struct Packet: Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4, 5, 6, 7, 8)

    /// How many bytes it has.
    static let size = MemoryLayout<Packet>.size
}
