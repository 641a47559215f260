// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this library that decide speed or fairness, and nothing else. Limits that a program can meet are
/// where they are enforced, and in Docs/Limits.md.
enum Tuning {
    // MARK: Sending

    /// A large message is cut into pieces of at most one part in this many of a ring: several of them fit, so that the
    /// reader copies one out while the next is written.
    static let piecesInRing = 8

    /// How long a sender waits for room in the ring, for each packet. A reader that handles messages reads again when
    /// it has handled 32 of them. A sender that waits for less time leaves the ring for packets that cost the reader
    /// several times as much. Docs/Decisions/0011-shared-ring.md.
    static let senderPatience = Duration.microseconds(100)

    /// The same at the port's end. A reply waits neither for a slow reader nor for one that manipulates its counter.
    static let replierPatience = Duration.microseconds(20)

    /// How long a sender waits for room before it yields its processor: a reader that has its own, and handles
    /// messages, mostly reads again before.
    static let timeBetweenYields = Duration.microseconds(20)

    /// How long a sender waits for a reader that was awake a moment ago to poll again, before it wakes it.
    static let timeBeforeWakeUp = Duration.microseconds(2)

    /// How many times a wake-up is tried for which the kernel has no memory.
    static let wakeUpTries = 4

    /// A reader that closes the ring states within this time how far it reads.
    static let closingPatience = Duration.milliseconds(100)

    /// When the kernel has no memory for a packet, too many descriptors are in flight, or none is left to wait with,
    /// the packet is sent again after this time.
    static let timeUntilRetry = Duration.milliseconds(10)

    // MARK: Receiving

    /// The most packets that one call receives, so that one busy connection delays the others little.
    static let packetBudget = 32

    /// The most bytes of a ring whose plain messages are queued together. Docs/Decisions/0018-batch-receive.md.
    static let batchSize = 64 << 10

    /// The most messages that are queued together.
    static let batchCount = 32

    /// The most steps between two packets: a peer that manipulates its counters delays its reader no longer.
    static let stepLimit = 16

    /// After this many polls that found nothing a loop no longer polls a ring, until the kernel reports something: each
    /// polled ring slows down each spin. Docs/Decisions/0023-busy-polling-while-handling.md.
    static let emptyPollLimit: UInt8 = 64

    /// How many times the right's end reads what a ring holds before the I/O thread does.
    static let passLimit = 256

    /// The most connections of a port whose rings a loop polls.
    /// Docs/Decisions/0025-a-thousand-connections-beside-ten.md.
    static let busyLimit = 4
}
