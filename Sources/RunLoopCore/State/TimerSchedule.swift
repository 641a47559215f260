// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// When a timer next fires, and when after that.
struct TimerSchedule: Sendable {
    var fireDate: MonotonicInstant
    /// The time between two firings; nil for a timer that fires once.
    let interval: Duration?
    /// How late it may fire so that it can share a wake-up; at most half the interval.
    var tolerance: Duration {
        didSet { tolerance = Self.clamp(tolerance, interval) }
    }

    init(fireDate: MonotonicInstant, interval: Duration?, tolerance: Duration) {
        self.fireDate = fireDate
        self.interval = interval
        self.tolerance = Self.clamp(tolerance, interval)
    }

    /// The latest date at which it may fire.
    var latestDate: MonotonicInstant { fireDate.advanced(by: tolerance) }

    /// Moves the fire date to the first date after `now` that keeps the phase: missed firings are dropped.
    mutating func advance(past now: MonotonicInstant) {
        guard let interval, fireDate <= now, fireDate != .distantFuture else { return }
        // 128 bits: the distance between two 64-bit dates does not fit into 64.
        let step = Int128(max(1, interval.nanoseconds))
        let start = Int128(fireDate.nanoseconds)
        let missed = (Int128(now.nanoseconds) - start) / step
        fireDate = MonotonicInstant(nanoseconds: Int64(clamping: start + (missed + 1) * step))
    }

    private static func clamp(_ tolerance: Duration, _ interval: Duration?) -> Duration {
        max(.zero, interval.map { min(tolerance, $0 / 2) } ?? tolerance)
    }
}
