// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Predicts from the last waits of a mode whether the next one is so short that spinning beats sleeping, and when a
/// spin should yield its processor for a moment: the thread that is to answer may be waiting for that processor.
struct SpinPredictor: Sendable {
    /// What a wait did before it ended.
    enum Spin: Sendable {
        case none, paid, failed
    }

    /// What became of the last yield of a spin.
    enum Yield: Equatable, Sendable {
        case none
        /// Something had arrived when the yield was over: its sender runs on this processor.
        case paid
        case wasted
        /// Another thread kept the processor for that long.
        case lost(Duration)

        /// What a yield was.
        init(lasting time: Duration, hasPaid: @autoclosure () -> Bool) {
            self = time > Tuning.longestYield ? .lost(time) : hasPaid() ? .paid : .wasted
        }

        var isLost: Bool { if case .lost = self { true } else { false } }
    }

    private var shortGaps = 0
    /// How many short gaps in a row a spin requires: doubled by each spin that failed, halved by each that paid.
    private var needed = Tuning.fewestShortGaps
    private var yieldsAtOnce = false
    private var restEnd = MonotonicInstant.distantPast

    /// Whether the next wait is worth a spin.
    var expectsShortWait: Bool { shortGaps >= needed }

    /// How long a spin that begins now waits before its first yield; nil when it must not yield.
    func firstYield(at now: MonotonicInstant) -> Duration? {
        if now < restEnd { return nil }
        return yieldsAtOnce ? .zero : Tuning.timeBetweenCalls
    }

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

    /// Learns from the last yield of a spin.
    mutating func didYield(_ yield: Yield, until now: MonotonicInstant) {
        switch yield {
        case .none: break
        case .paid: yieldsAtOnce = true
        case .wasted: yieldsAtOnce = false
        case .lost(let time):
            yieldsAtOnce = false
            restEnd = now.advanced(by: time * Tuning.restAfterLoss)
        }
    }
}
