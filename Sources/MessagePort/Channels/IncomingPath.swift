// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Where the peer's next packet is: on the socket, or in the ring.
struct IncomingPath: Sendable {
    var reader: RingConsumer?
    /// The next packet is in the ring, not on the socket.
    var isOnRing = false
    /// The first packet on the socket is a wake-up that was noticed. It stays until the ring is empty: as long as the
    /// ring is not, the socket is readable, and every thread that waits for the socket wakes again.
    var hasSpentWakeUp = false
    /// How many packets on the socket come before the next path change.
    private(set) var promisedCount = 0
    /// The peer has offered rings, which it may do once.
    var wasOffered = false

    /// A loop polls the ring, and the peer sends no wake-ups.
    var isPolled = false
    /// The number of the last polling period.
    private(set) var period: UInt64 = 0
    /// A loop has polled the ring, and since then no thread has asked the peer for wake-ups and found the ring empty.
    private(set) var wasPolled = false
    /// How many times a loop has begun to poll, or to sleep while it polls, since the ring was last read.
    private var emptyPolls: UInt8 = 0

    /// Whether a loop that spins should poll the ring.
    var isWorthPolling: Bool { emptyPolls < Tuning.emptyPollLimit }

    var hasRing: Bool { reader != nil }

    /// A loop begins to poll the ring. That counts as a poll that found nothing, unless something comes.
    mutating func beginPolling() {
        (isPolled, wasPolled) = (true, true)
        period += 1
        didPollEmptyRing()
    }

    mutating func didPollEmptyRing() {
        if isWorthPolling { emptyPolls += 1 }
    }

    /// A packet was read from the ring.
    mutating func didReadRing() { emptyPolls = 0 }

    /// A packet other than a wake-up was read from the socket.
    mutating func didReadSocket() {
        if promisedCount > 0 { promisedCount -= 1 }
    }

    /// The ring is empty, and a loop polls it: what is on the socket may wait.
    var isReadForNow: Bool {
        guard isOnRing, isPolled, !hasSpentWakeUp, let reader else { return false }
        return !reader.hasMore
    }

    /// The next packet is on the socket. The path-change packet there stays until the ring is empty.
    ///
    /// - Parameter count: at least this many packets come before that one.
    mutating func leaveRing(before count: Int) {
        (isOnRing, isPolled, wasPolled, promisedCount) = (false, false, false, count)
    }

    /// A loop that polls the ring has read it, and ends its polling.
    ///
    /// - Returns: whether it has ended; otherwise it continues, as data has come since.
    mutating func endPolling() -> Bool {
        guard isPolled, isOnRing, !hasSpentWakeUp else { return false }
        isPolled = false
        isPolled = mustReadOn()
        return !isPolled
    }

    /// The ring was found empty: asks the peer for wake-ups, unless a loop polls.
    ///
    /// - Returns: whether data has come since, for which there is no wake-up.
    mutating func mustReadOn() -> Bool {
        guard let reader else { return false }
        if isPolled { return reader.hasMore }
        reader.sleep()
        if reader.hasMore {
            reader.wake()
            return true
        }
        wasPolled = false
        return false
    }
}
