// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A run that is in progress.
struct LoopRun {
    /// The index of its mode.
    let mode: Int
    let deadline: MonotonicInstant
    /// The time limit was zero or less: poll, handle at most one event, never wait.
    let polls: Bool
    let returnsAfterSource: Bool
    /// The run continues until its condition or its deadline ends it; neither a stop nor an empty mode does.
    let isConditional: Bool
    /// The last event was timers, so a ready source goes first now.
    var hasJustFiredTimers = false
    /// The last event was the main queue, or there was none yet: it does not go before all others now.
    var hasJustServedMainQueue = true
    /// How many events were handled since the kernel was last polled.
    var eventsSinceLook = 0
    /// When the kernel must be polled again; nil before the first event since the last poll.
    var nextLook: MonotonicInstant?

    /// Whether descriptors must be polled before the next event, so that a stream of events cannot starve them.
    mutating func isLookDue(at now: MonotonicInstant) -> Bool {
        if eventsSinceLook == 0 { return false }
        guard let nextLook else {
            nextLook = now.advanced(by: .milliseconds(2))
            return false
        }
        return eventsSinceLook >= 128 || nextLook <= now
    }

    /// The kernel was polled.
    mutating func didLook() { (eventsSinceLook, nextLook) = (0, nil) }

    /// The wait of the current pass, if it found nothing at first, until its mode has learnt from it.
    var pastWait: PastWait?
    /// The wait of the current pass, as instruments know it.
    var wait = InstrumentSpan.none
    /// That wait found nothing to do.
    var hasSlept = false
}
