// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A run that is under way.
struct LoopRun {
    /// The index of its mode.
    let mode: Int
    let deadline: MonotonicInstant
    /// The time limit was zero or less: look, handle at most one event, never wait.
    let polls: Bool
    let returnsAfterSource: Bool
    /// It goes on until its condition or its deadline ends it, not because of a stop or an empty mode.
    let isConditional: Bool
    /// The last event was timers, so a ready source goes first now.
    var hasJustFiredTimers = false
    /// The last event was the main queue, or there was none yet: it does not go before all others now.
    var hasJustServedMainQueue = true
    /// How many events were handled since the kernel was asked last.
    var eventsSinceLook = 0
    /// When it has to be asked again; nil before the first event since.
    var nextLook: MonotonicInstant?

    /// Whether descriptors have to be looked at before the next event, so that a stream of events cannot hide them.
    mutating func isLookDue(at now: MonotonicInstant) -> Bool {
        if eventsSinceLook == 0 { return false }
        guard let nextLook else {
            nextLook = now.advanced(by: .milliseconds(2))
            return false
        }
        return eventsSinceLook >= 128 || nextLook <= now
    }

    /// The kernel was asked.
    mutating func didLook() { (eventsSinceLook, nextLook) = (0, nil) }

    /// The wait of the present turn, if it found nothing at first, until its mode has learnt from it.
    var pastWait: PastWait?
    /// The wait of the present turn, as instruments know it.
    var wait = InstrumentSpan.none
    /// There was nothing to do in that wait.
    var hasSlept = false
}
