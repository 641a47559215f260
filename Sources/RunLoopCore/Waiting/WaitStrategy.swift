// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// How a loop waits when nothing is there yet.
///
/// To sleep and be woken takes tens of microseconds. A loop that spins instead notices an event in a fraction of one,
/// and keeps a processor busy meanwhile.
public enum WaitStrategy: Hashable, Sendable {
    /// Spins for up to 100 µs before it sleeps, but only while the events in the mode have come less than 250 µs apart,
    /// and only when two or more processors may run this program: by the thread's affinity mask and by the control
    /// group's limit. A spin that did not pay makes the next one rarer. An idle program never spins. A spin that has
    /// found nothing in 5 µs lets the threads that want its processor go first, by a system call each 5 µs
    /// (`sched_yield`): the one that it waits for may be among them. Where somebody else keeps the processor then, that
    /// is left off for a while.
    case adaptive
    /// Sleeps at once.
    case blocking
    /// Spins for so long before it sleeps, always: also on a single processor, where it keeps others from running.
    case spinning(for: Duration)
}

extension WaitStrategy {
    /// What a new loop has: `PORT_WAIT` in the environment, `adaptive`, `blocking` or `spinning`; without a word there,
    /// adaptive.
    static let standard: WaitStrategy =
        switch sysEnvironment("PORT_WAIT") {
        case "blocking": .blocking
        case "spinning": .spinning(for: .microseconds(100))
        default: .adaptive
        }
}

/// How often a loop has slept and spun since it was made.
public struct WaitCounts: Hashable, Sendable {
    /// Waits in the kernel.
    public var sleeps = 0
    /// Spins that an event, a wake-up, or the run's limit ended: no sleep was needed.
    public var spinsThatPaid = 0
    /// Spins after which the loop slept nevertheless, or in which somebody else kept the processor.
    public var spinsThatDidNot = 0
}
