// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// How long a wait may take, and how much of it may be spent spinning.
struct WaitPlan: Sendable {
    var limit: MonotonicInstant
    var spin = Duration.zero
    /// Whether to spin only where that leaves a processor to other threads, and to yield this one to them now and then.
    var isConsiderate = false
    /// No descriptor is watched.
    var watchesNothing = false

    static var none: WaitPlan { WaitPlan(limit: .distantPast) }
}

/// What a wait has done so far.
struct PresentWait {
    /// When it found nothing; nil when it found something at once.
    var start: MonotonicInstant?
    var spin = SpinPredictor.Spin.none
    var yield = SpinPredictor.Yield.none
    var hasLooked = false
    /// It has found something in memory that the loop still polled.
    var hasTakenIn = false
}

/// A wait that found nothing at first, and has ended.
struct PastWait {
    var start: MonotonicInstant
    var end: MonotonicInstant
    var spin: SpinPredictor.Spin
    var yield: SpinPredictor.Yield
}
