// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a waiting loop polls besides its own parker: memory that another process writes. A loop polls it while it spins.
// While the loop sleeps, an edge of a socket of its own reports that something has arrived; without such a socket, the
// kernel reports the connection's socket as usual. Only the sources that the kernel has reported last in the mode are
// asked for such memory, so the cost does not grow with idle sources. See `ThreadRunLoop+BusyPolling.swift`.

import PortSystem

/// Memory in which something for a source may arrive without a system call.
package protocol BusyPollable: AnyObject, Sendable {
    /// A loop begins to poll: from now on the peer need not signal arrivals through the kernel.
    ///
    /// - Returns: the number of the polling period, which distinguishes it from those of other threads; nil when there
    ///   is nothing to poll, or another thread polls already.
    func beginBusyPolling() -> UInt64?
    /// Whether something has arrived. Quick: an atomic load or two.
    var hasArrived: Bool { get }
    /// The processor on which the producer ran when it last wrote, numbered from one; zero when that is not known. Quick.
    var producerProcessor: UInt64 { get }
    /// Receives what has arrived, as performing the source would. Signals every source that became ready. When nothing
    /// is left, that may end the polling.
    ///
    /// - Returns: whether a scan for ready sources is worth while; false when the rest of a message is still to come.
    func receiveArrivals() -> Bool
    /// The channel that wakes a parked loop; nil when there is none.
    var wakeChannel: WakeChannelRegistration? { get }
    /// The loop is about to sleep, and polls again when it is awake: arrivals meanwhile come with an edge of the
    /// channel.
    ///
    /// - Returns: whether an edge will end the sleep; false when the loop must not sleep, because something has arrived,
    ///   or no longer polls there, so that the kernel reports arrivals.
    func park(_ period: UInt64) -> Bool
    /// The loop is awake, and polls.
    func unpark(_ period: UInt64)
    /// The loop's wait is over. If nothing but this source of this loop is waiting for messages there, the loop can
    /// keep polling: it handles what has come, and polls again before it waits, in the same run. It stops when the run
    /// is over, or when another run begins.
    ///
    /// - Returns: whether the loop keeps polling. That may end at any time, when another thread begins to wait there:
    ///   see `isBusyPolled`.
    func continueBusyPolling(_ period: UInt64, for source: ItemID, on loop: ThreadRunLoop) -> Bool
    /// Whether the loop still polls, and may continue.
    func isBusyPolled(_ period: UInt64) -> Bool
    /// The loop stops polling. Unless `receiveArrivals` has already ended the polling, what has arrived is received now, and
    /// later arrivals are signalled through the kernel. Does nothing when that period has ended.
    func endBusyPolling(_ period: UInt64)
}

/// Memory that a loop polls, the number of the polling period, and the source for which the loop polls: its id, because
/// the source itself may own its port. A class, because the memory's type may have weak references, which make each
/// copy of a list slow.
final class BusyPollEntry: Sendable {
    let pollable: any BusyPollable  // immutable
    let period: UInt64  // immutable
    let source: ItemID  // immutable

    init(_ pollable: any BusyPollable, _ period: UInt64, for source: ItemID) {
        (self.pollable, self.period, self.source) = (pollable, period, source)
    }

    var isBusyPolled: Bool { pollable.isBusyPolled(period) }
}
