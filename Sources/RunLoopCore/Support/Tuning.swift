// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this library that decide speed or fairness, and nothing else. Limits that a program can meet are
/// where they are enforced, and in Docs/Limits.md. A constant, or its section, names the decision of Docs/Decisions
/// that it is from, or says that it was chosen and not measured.
enum Tuning {
    // MARK: Spinning. Decision 0008.

    /// A sleeping peer needs 20 to 80 µs to wake, more on a virtual machine, so its answer arrives within this time.
    static let spinLimit = Duration.microseconds(100)

    /// A round trip between two sleeping threads takes 50 to 165 µs, plus noise.
    static let shortGap = Duration.microseconds(250)

    /// A round trip between two processors takes less: it makes no system call.
    static let timeBetweenCalls = Duration.microseconds(5)

    /// A thread that only answers is done sooner. One that computes keeps the processor for its time slice:
    /// milliseconds.
    static let longestYield = spinLimit

    /// After a lost yield there is none for this multiple of its duration to threads of which it is not known that they
    /// will answer: so lost yields cost less than a hundredth.
    static let restAfterLoss = 256

    /// After a lost yield a loop whose peer is known to be here does not spin for this multiple of its duration: it
    /// sleeps.
    static let restFromPeerAfterLoss = 8

    /// After this many short waits in a row a loop spins before it sleeps.
    static let fewestShortGaps = 4

    /// Spins that found nothing double the number of short waits that are needed, up to this many.
    static let mostShortGaps = 1024

    /// How many polls a spin makes between two readings of the clock: about half a microsecond. Chosen, not measured.
    static let pollsBetweenTimes = 16

    /// How long the number of processors that this process may use is assumed not to change. Chosen, not measured.
    static let allowanceValidity = Duration.seconds(5)

    // MARK: Scans. Chosen, not measured, unless a decision is named.

    /// After this many events, or this time, the kernel is polled before the next event, so that a stream of events
    /// cannot starve descriptors. Decision 0007.
    static let eventsBetweenPolls = 128

    /// See `eventsBetweenPolls`. Decision 0007.
    static let timeBetweenPolls = Duration.milliseconds(2)

    /// How many sources that were reported last a mode remembers, to poll them without the kernel. Decision 0008.
    static let recentReportCount = 4

    /// The capacity that an empty table keeps at most.
    static let idleRegistrationCapacity = 64

    /// A queue of blocks drops its gaps when there are more of them than blocks, and more than this.
    static let gapLimit = 32

    /// Up to this many items of a heap are searched linearly, which is faster than a table of their positions. A heap
    /// drops the slots before its first item only when there are more than this.
    static let fewItems = 8

    /// The capacity for blocks up to which an empty queue keeps its memory.
    static let idleBlockCapacity = 128

    /// How many sources ahead a ready list prefetches a registration, and then the source: with many sources, both have
    /// left the caches since the last message. Decision 0022.
    static let registrationPrefetchDistance = 4

    /// See `registrationPrefetchDistance`. Decision 0022.
    static let sourcePrefetchDistance = 2

    // MARK: Descriptors. Chosen, not measured, unless a decision is named.

    /// The interval between attempts to watch a descriptor, or to serve the main queue, when the kernel lacks the
    /// resources for it.
    static let timeUntilRetry = Duration.milliseconds(20)

    /// One report may have been under way when its key ended; over time there may be many of those.
    static let staleKeyLimit = 256

    /// How long a loop leaves the processor when it cannot replace its set.
    static let timeUntilRenewal = Duration.milliseconds(1)

    /// A loop that parks here for the first time moves the channel into its set only at its eighth attempt: two loops
    /// that alternate would otherwise move it each time. Decision 0027.
    static let strangerLimit = 8

    /// A peer that wakes the loop more often than this, within `idleTime`, without writing anything is cut off.
    /// Decision 0027.
    static let idleLimit = 64

    /// See `idleLimit`. Decision 0027.
    static let idleTime = Duration.seconds(1)

    // MARK: Traces. Chosen, not measured.

    /// How many events of a trace are copied at once; a loop that records waits at most that long.
    static let eventsPerCopy = 256

    /// The bytes of a trace are written in pieces of about this size.
    static let tracePieceSize = 65_536
}
