// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a loop that waits looks at besides its own bell: memory that another process writes. A loop looks while it spins. While
// it sleeps, an edge of a socket of its own says that something has arrived; without one, the kernel reports the socket as ever. Which places there are, the sources say that the kernel has reported in the mode last,
// so the cost does not grow with sources that are idle. See `ThreadRunLoop+LookingOut.swift`.

import PortSystem

/// Memory in which something for a source may arrive without the kernel's knowing.
package protocol BusyPollable: AnyObject, Sendable {
    /// A loop begins to look: nobody need tell the kernel from now on.
    ///
    /// - Returns: the number of the look, by which the loop tells it from those of others; nil when there is nothing to look at, or
    ///   another thread looks already.
    func beginLooking() -> UInt64?
    /// Whether something is there. Quick: an atomic load or two.
    var hasArrived: Bool { get }
    /// Takes in what is there, as the source would when it is performed. Rings whatever became ready. When nothing is left, that
    /// may end the looking.
    ///
    /// - Returns: whether that is worth a look at what is ready; otherwise more is to come.
    func takeIn() -> Bool
    /// The channel by which a loop that is parked is woken; nil when there is none.
    var wakeChannel: WakeChannelWatch? { get }
    /// The loop is about to sleep, and polls on when it is awake: what arrives meanwhile comes with an edge of the channel.
    func park(_ look: UInt64) -> ParkAnswer
    /// The loop is awake, and polls.
    func unpark(_ look: UInt64)
    /// The loop has waited. Where nobody but this source of this loop listens, it can keep polling: it handles what has come,
    /// and looks again before it waits, in the same run; when the run is over, or another one begins, it stops.
    ///
    /// - Returns: whether it need not. Then that may end at any time, because somebody else begins to listen: see `isKept`.
    func keepLooking(_ look: UInt64, for source: ItemID, on loop: ThreadRunLoop) -> Bool
    /// Whether the loop has not stopped to look, and need not.
    func isKept(_ look: UInt64) -> Bool
    /// The loop does not look any more: unless `takeIn` has ended that already, what is there now is taken in, and of what comes
    /// later the kernel is told. Nothing is done when the look has ended.
    func endLooking(_ look: UInt64)
}

/// What a place says to a loop that is about to sleep.
package enum ParkAnswer: Sendable {
    /// An edge of the channel will end the sleep.
    case parked
    /// Something has arrived: the loop must not sleep.
    case arrived
    /// The loop does not poll there any more: the kernel reports.
    case ended
}
