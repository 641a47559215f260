// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this library that decide speed, fairness or how long to wait, and nothing else. Limits that a
/// program can meet are where they are enforced, and in Docs/Limits.md. A constant, or its section, names the decision
/// of Docs/Decisions that it is from, or says that it was chosen and not measured.
enum Tuning {
    // MARK: Registering. Chosen, not measured.

    /// How long a registration waits at first at a name that is locked and names no owner; each further wait is twice
    /// as long.
    static let firstPause = Duration.microseconds(100)

    /// How many times it waits: 0.2 s together.
    static let pauseCount = 11

    // MARK: Watching. Chosen, not measured, unless a decision is named.

    /// How many times one call reads what the kernel reports of a directory: enough for as many reports as the kernel
    /// queues. The rest waits for the next call, so that a process that makes changes as fast as they are read cannot
    /// keep a caller here.
    static let readLimit = 32

    /// How many times a watch begins anew while the path to the directory changes.
    static let beginLimit = 1000

    /// The shortest interval between two scans where the kernel gives no watch.
    static let shortestInterval = Duration.milliseconds(1)

    /// How many processes a watch of names watches for their end at most, each by a descriptor. A record merely states
    /// its owner, so one process can invent as many owners as it has names. Decision 0010.
    static let ownerLimit = 64

    /// The pause between two scans of the other owners' names is this many times as long as a scan takes.
    /// Decision 0010.
    static let pauseOfScan = 10

    /// The shortest and the longest of these pauses. Decision 0010.
    static let scanPauses = Duration.seconds(1)...Duration.seconds(10)

    /// How long a watch waits before it tries again, when this process has no descriptor or no memory left.
    static let timeUntilRetry = Duration.milliseconds(100)

    // MARK: Waiting. Chosen, not measured.

    /// When a declared socket that refuses is tried again, the first and the last time; each pause is twice as long as
    /// the one before, a second together.
    static let declaredPauses = Duration.milliseconds(1)...Duration.milliseconds(512)
}
