// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Where the peer's next packet is: on the socket, or in the ring.
struct IncomingPath: Sendable {
    private enum Phase: Sendable {
        case socket
        /// The peer wakes a consumer that sleeps.
        case ring
        /// A loop polls the ring, and the peer sends no wake-ups.
        case polledRing
        /// A loop has polled the ring, and since then no thread has asked the peer for wake-ups and found the ring
        /// empty.
        case unsettledRing
    }

    var consumer: RingConsumer?
    private var phase = Phase.socket
    /// The first packet on the socket is a wake-up that was noticed. It stays until the ring is empty: as long as the
    /// ring is not, the socket is readable, and every thread that waits for the socket wakes again.
    var hasSpentWakeUp = false
    /// Whether the ring was closed because the port moves to another process. Wake-ups that were sent for it may come.
    private(set) var isWoundUp = false
    /// The peer has offered rings, which it may do once for each owner of the port.
    private(set) var wasOffered = false
    /// How many packets on the socket come before the next path change.
    private(set) var promisedCount = 0
    /// The number of the last polling period.
    private(set) var period: UInt64 = 0
    /// How many times a loop has begun to poll, or to sleep while it polls, since the ring was last read.
    private var emptyPolls: UInt8 = 0

    /// Whether packets for rings that are gone may come.
    var mayHaveHadRings: Bool { isWoundUp || wasOffered }

    var hasRing: Bool { consumer != nil }

    /// Whether the next packet is in the ring.
    var isOnRing: Bool { phase != .socket }

    /// Whether a loop polls the ring.
    var isPolled: Bool { phase == .polledRing }

    /// Whether the ring may hold data for which no wake-up is pending, and which no loop polls for.
    var isUnsettled: Bool { phase == .unsettledRing }

    /// Whether a loop that spins should poll the ring.
    var isWorthPolling: Bool { emptyPolls < Tuning.emptyPollLimit }

    /// The ring is empty, and a loop polls it: what is on the socket may wait.
    var isReadForNow: Bool {
        guard isPolled, !hasSpentWakeUp, let consumer else { return false }
        return !consumer.hasMore
    }

    // MARK: The path

    /// The next packets are in the ring; the path-change packet stays on the socket as a wake-up.
    mutating func enterRing() { (phase, hasSpentWakeUp) = (.ring, true) }

    /// The next packet is on the socket. The path-change packet there stays until the ring is empty. At least `count`
    /// packets come before that one.
    mutating func leaveRing(before count: Int) { (phase, promisedCount) = (.socket, count) }

    /// The ring was closed, and read to its end: everything comes on the socket from now on.
    mutating func windUp() {
        (consumer, phase, hasSpentWakeUp, promisedCount) = (nil, .socket, false, 0)
        (isWoundUp, wasOffered) = (true, true)
    }

    /// Whether this process has wound a ring up, and the peer may not offer another one.
    var mayNotReplaceRing: Bool { isWoundUp && wasOffered }

    /// A ring was wound up, here or in another process: what was sent for it may come, and then another offer.
    mutating func resume(hadRings: Bool) { (isWoundUp, wasOffered) = (hadRings, false) }

    /// The port at the other end has moved: everything comes on the socket until there are new rings.
    mutating func portDidMove() {
        (consumer, phase, hasSpentWakeUp, promisedCount, emptyPolls) = (nil, .socket, false, 0, 0)
    }

    /// The peer has offered rings. What was sent for those that were wound up has been read.
    mutating func didOffer() { (wasOffered, isWoundUp) = (true, false) }

    /// The path-change packet was read, which leads to the rest of a ring that is wound up.
    mutating func enterLastTime() { phase = .ring }

    /// A packet was read from the ring.
    mutating func didReadRing() { emptyPolls = 0 }

    /// A packet other than a wake-up was read from the socket.
    mutating func didReadSocket() {
        if promisedCount > 0 { promisedCount -= 1 }
    }

    // MARK: Polling

    /// A loop begins to poll the ring. That counts as a poll that found nothing, unless something comes.
    ///
    /// - Returns: the number of the polling period; nil when there is nothing to poll. With a wake-up on the socket the
    ///   kernel reports it already.
    mutating func beginPolling() -> UInt64? {
        guard let consumer, phase == .ring, !hasSpentWakeUp, isWorthPolling else { return nil }
        phase = .polledRing
        period += 1
        didPollEmptyRing()
        consumer.wake()
        return period
    }

    mutating func didPollEmptyRing() {
        if isWorthPolling { emptyPolls += 1 }
    }

    /// The consumer, if a loop still polls the ring in this period.
    func consumer(polledIn period: UInt64) -> RingConsumer? { isPolled && self.period == period ? consumer : nil }

    /// A loop that polls the ring has read it: its polling ends, unless data has come since.
    mutating func endPollingIfEmpty() {
        guard isPolled, !hasSpentWakeUp else { return }
        phase = .unsettledRing
        if mustReadOn() { phase = .polledRing }
    }

    /// No loop polls the ring any more.
    ///
    /// - Returns: whether the ring may hold data for which no wake-up is pending.
    mutating func stopPolling() -> Bool {
        if isPolled { phase = .unsettledRing }
        return isUnsettled
    }

    /// The ring was found empty: asks the peer for wake-ups, unless a loop polls. The path is the ring.
    ///
    /// - Returns: whether data has come since, for which there is no wake-up.
    mutating func mustReadOn() -> Bool {
        guard let consumer else { return false }
        if isPolled { return consumer.hasMore }
        consumer.sleep()
        if consumer.hasMore {
            consumer.wake()
            return true
        }
        phase = .ring
        return false
    }
}
