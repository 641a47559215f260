// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Predicts from the last waits of a mode whether the next one is so short that spinning beats sleeping, and whether a
/// spin should yield its processor now and then: the thread that is to answer may be waiting for that processor.
struct SpinPredictor: Sendable {
    /// What a wait did before it ended.
    enum Spin: Sendable {
        case none, paid, failed
    }

    private var shortGaps = 0
    /// How many short gaps in a row a spin requires: doubled by each spin that failed, halved by each that paid.
    private var needed = Tuning.fewestShortGaps
    private var restEnd = MonotonicInstant.distantPast
    private var restFromPeerEnd = MonotonicInstant.distantPast

    /// Whether the next wait is worth a spin.
    var expectsShortWait: Bool { shortGaps >= needed }

    /// Whether a spin that begins now may yield to a peer that is known to be here; or to threads of which it is not
    /// known that they will answer.
    func mayYield(toPeer: Bool, at now: MonotonicInstant) -> Bool { now >= (toPeer ? restFromPeerEnd : restEnd) }

    /// Learns from a wait that has ended: how long it took, whether it spun, and whether that paid.
    mutating func didWait(_ gap: Duration, _ spin: Spin) {
        switch spin {
        case .paid:
            needed = max(Tuning.fewestShortGaps, needed / 2)
            shortGaps = needed
        case .failed:
            needed = min(Tuning.mostShortGaps, needed * 2)
            shortGaps = 0
        case .none:
            shortGaps = gap < Tuning.shortGap ? min(shortGaps + 1, Tuning.mostShortGaps) : 0
        }
    }

    /// Whether a yield of that duration was lost: to a thread that did more than answer.
    static func isLost(_ time: Duration) -> Bool { time > Tuning.longestYield }

    /// Learns that another thread kept the processor during a yield, for that long.
    mutating func didLose(_ time: Duration, until now: MonotonicInstant) {
        restEnd = now.advanced(by: time * Tuning.restAfterLoss)
        restFromPeerEnd = now.advanced(by: time * Tuning.restFromPeerAfterLoss)
    }
}
