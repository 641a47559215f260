// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this library that decide speed or fairness, and nothing else. Limits that a program can meet are
/// where they are enforced, and in Docs/Limits.md. A constant, or its section, names the decision of Docs/Decisions
/// that it is from, or says that it was chosen and not measured.
enum Tuning {
    // MARK: Copying. Decision 0026.

    /// The most bytes that one copy moves. From 4 KiB on, glibc before 2.40 copies with one instruction (`rep movsb`),
    /// which on some processors takes many times as long when the target is up to 63 bytes behind the source,
    /// regardless of the page. Benchmarks/History.md, "Large bodies".
    static let copiedBlock = 2048

    /// Copies of at least this many bytes bypass the producer's caches: fetching lines from another processor's caches
    /// takes up to six times as long as fetching them from memory.
    static let longCopy = 8192

    // MARK: Recycled buffers. Decision 0020.

    /// An array that was made for at most this many bytes may be put into the pool.
    static let pooledCapacity = 64

    /// The capacities that the allocator may return for that request: it rounds up, and hands out a whole piece of
    /// memory when the rest would be too small for any use (two steps of 16 bytes, in the C library).
    static let pooledCapacities = pooledCapacity..<pooledCapacity + 32

    /// How many arrays pass between a thread and the depot as a unit.
    static let magazineSize = 32

    /// How many full magazines the depot holds: enough for all messages of a queue of 1,024.
    static let mostMagazines = 32

    /// How many arrays before its use an array is prefetched: its object is in another processor's cache, and fetching
    /// it takes about as long as four messages. Decision 0022.
    static let prefetchDistance = 4

    // MARK: Files. Chosen, not measured.

    /// A file that blocks the thread that closes descriptors for this long does not delay the others further.
    static let longestClose = Duration.seconds(1)

    /// The most threads that files may block as they are closed; beyond that the other descriptors wait.
    static let blockedClosers = 16

    /// How long a thread leaves the processor between two attempts to lock a file that others test. A process that was
    /// stopped while it tests makes the others wait.
    static let timeBetweenLockAttempts = Duration.microseconds(200)

    /// How many bytes one read of a file requests.
    static let readSize = 4096

    /// How many bytes of reports on directories are read at once: some hundreds of reports.
    static let directoryReportSize = 16_384

    // MARK: Descriptors. Chosen, not measured.

    /// The most reports of one wait for a set of descriptors.
    static let reportLimit = 64
}
