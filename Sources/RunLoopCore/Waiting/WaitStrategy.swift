// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// How a loop waits when nothing is ready.
///
/// Sleeping and being woken takes tens of microseconds. A loop that spins notices an event within a fraction of a
/// microsecond, and keeps a processor busy meanwhile.
public enum WaitStrategy: Hashable, Sendable {
    /// Spins for up to 100 µs before it sleeps, but only while the events in the mode arrive less than 250 µs apart. A
    /// spin that did not pay makes the next one rarer. An idle program never spins.
    ///
    /// When the thread that sent the last event ran on the loop's own processor, the spin yields that (`sched_yield`) at
    /// each poll. Otherwise it spins only when two or more processors may run this program, by the thread's affinity mask
    /// and by the control group's limit, and yields every 5 µs: the thread that it waits for may have been moved here.
    /// When another thread keeps the processor for long, the loop stops these yields for a while.
    case adaptive
    /// Sleeps at once.
    case blocking
    /// Always spins for the given time before it sleeps: also on a single processor, where it keeps other threads from
    /// running.
    case spinning(for: Duration)

    /// The strategy of a new loop: `PORT_WAIT` in the environment, `adaptive`, `blocking` or `spinning`; without it,
    /// adaptive.
    static let standard: WaitStrategy =
        switch sysEnvironment("PORT_WAIT") {
        case "blocking": .blocking
        case "spinning": .spinning(for: Tuning.spinLimit)
        default: .adaptive
        }
}

/// How often a loop has slept and spun since it was made.
public struct WaitCounts: Hashable, Sendable {
    /// Waits in the kernel.
    public var sleeps = 0
    /// Spins that an event, a wake-up, or the run's limit ended: no sleep was needed.
    public var spinsThatPaid = 0
    /// Spins after which the loop slept nevertheless, or during which another thread kept the processor.
    public var spinsThatDidNot = 0

    /// Makes counts; in which everything is zero, by default.
    public init(sleeps: Int = 0, spinsThatPaid: Int = 0, spinsThatDidNot: Int = 0) {
        (self.sleeps, self.spinsThatPaid, self.spinsThatDidNot) = (sleeps, spinsThatPaid, spinsThatDidNot)
    }

    package mutating func add(_ other: WaitCounts) {
        sleeps += other.sleeps
        spinsThatPaid += other.spinsThatPaid
        spinsThatDidNot += other.spinsThatDidNot
    }
}
