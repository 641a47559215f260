// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What a connection keeps from one burst to the next.
struct ReceiveBatch: ~Copyable, Sendable {
    /// The packets that were seen.
    var packets: [PacketPrefix] = []
    /// Their messages, before they are queued.
    var messages = MessageBuffer()
    /// How many packets are worth a look: fewer where there was no place for all of the last burst.
    private(set) var most = ReceiveBatch.mostPackets
    static let mostPackets = 32

    /// Of so many messages that may be taken, so many have found a place.
    mutating func didReserve(_ places: Int, of count: Int) {
        most = places < count ? max(1, places) : min(Self.mostPackets, 2 * most)
    }
}
