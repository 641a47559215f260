// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// A moment on the kernel's monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds since an arbitrary start.
///
/// Arithmetic saturates: a moment too far ahead becomes ``distantFuture``, which never comes.
public struct MonotonicInstant: Hashable, Sendable, Comparable, InstantProtocol {
    /// Nanoseconds since the clock's start.
    public let nanoseconds: Int64

    /// Makes the moment that is a number of nanoseconds after the clock's start.
    ///
    /// - Parameter nanoseconds: nanoseconds since the clock's start.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The moment that never comes: as a deadline it means "no limit".
    public static let distantFuture = MonotonicInstant(nanoseconds: .max)

    /// A moment before all others.
    public static let distantPast = MonotonicInstant(nanoseconds: .min)

    /// The present moment.
    public static var now: MonotonicInstant {
        MonotonicInstant(CLOCK_MONOTONIC)
    }

    /// The current moment as of the last timer interrupt: some milliseconds old, and cheaper.
    package static var coarse: MonotonicInstant {
        MonotonicInstant(CLOCK_MONOTONIC_COARSE)
    }

    @inline(__always)
    private init(_ clock: clockid_t) {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        self.init(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The moment that is `duration` from now.
    ///
    /// - Parameter duration: how far ahead; negative for the past.
    /// - Returns: the moment, saturated.
    public static func after(_ duration: Duration) -> MonotonicInstant {
        now.advanced(by: duration)
    }

    /// The moment that is `duration` after this one; ``distantFuture`` and ``distantPast`` do not change.
    ///
    /// - Parameter duration: how far ahead; negative for earlier.
    /// - Returns: the moment, saturated.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        if self == .distantFuture || self == .distantPast { return self }
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
        if overflow { return duration < .zero ? .distantPast : .distantFuture }
        return MonotonicInstant(nanoseconds: sum)
    }

    /// The time from this moment to another.
    ///
    /// - Parameter other: the later moment.
    /// - Returns: the time between; negative when `other` is earlier.
    public func duration(to other: MonotonicInstant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (other > self ? .max : .min) : difference)
    }

    /// The nanoseconds left until this moment, at least zero, or -1 when the moment never comes: the form that the
    /// shims use.
    var remainingNanoseconds: Int64 {
        if self == .distantFuture { return -1 }
        if self == .distantPast { return 0 }
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(Self.now.nanoseconds)
        return overflow ? (nanoseconds < 0 ? 0 : .max) : max(0, difference)
    }

    /// Whether one moment comes before another.
    public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// Whole nanoseconds, rounded up so that a wait never ends early, saturated at the ends of `Int64`.
    package var nanoseconds: Int64 {
        // Up to 18 seconds: one division of a machine word.
        let exact = attoseconds
        let word = UInt64(truncatingIfNeeded: exact)
        if Int128(word) == exact { return Int64(word / 1_000_000_000 + (word % 1_000_000_000 > 0 ? 1 : 0)) }
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let fraction = attoseconds / 1_000_000_000 + (attoseconds % 1_000_000_000 > 0 ? 1 : 0)
        let (sum, sumOverflow) = whole.addingReportingOverflow(fraction)
        return sumOverflow ? (seconds < 0 ? .min : .max) : sum
    }
}
