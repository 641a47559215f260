// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What a connection retains from one batch of plain messages to the next.
struct ReceiveBatch: ~Copyable, Sendable {
    /// The packets that were seen.
    var packets: [PacketPrefix] = []
    /// Their messages, before they are queued.
    var messages = MessageBuffer()
    /// How many packets are worth reading ahead: fewer where the queue had no slots for all of the last batch.
    private(set) var most = Tuning.batchCount

    /// Of `count` messages that may be read, this many have slots in the queue.
    mutating func didReserve(_ slots: Int, of count: Int) {
        most = slots < count ? max(1, slots) : min(Tuning.batchCount, 2 * most)
    }
}
