// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Guesses from the last waits of a mode whether the next one is so short that spinning beats sleeping, and when a spin
/// is to let others have its processor for a moment: who shall answer may be waiting for it.
struct SpinPredictor: Sendable {
    /// What a wait did before it ended.
    enum Spin: Sendable {
        case none, paid, failed
    }

    /// What became of the last yield of a spin.
    enum Yield: Equatable, Sendable {
        case none
        /// What was waited for had come when it was over: who sent it is on this processor.
        case paid
        case vain
        /// Somebody else kept the processor for so long.
        case lost(Duration)

        /// What a yield was.
        init(lasting time: Duration, hasPaid: @autoclosure () -> Bool) {
            self = time > SpinPredictor.longestYield ? .lost(time) : hasPaid() ? .paid : .vain
        }

        var isLost: Bool { if case .lost = self { true } else { false } }
    }

    /// A sleeping peer needs 20 to 80 µs to wake, the longer on a virtual machine, so an answer from one comes within
    /// this time.
    static let limit = Duration.microseconds(100)
    /// A round trip between two sleeping threads takes 50 to 165 µs, and noise on top.
    private static let shortGap = Duration.microseconds(250)
    /// A round trip between two processors takes less: it makes no system call.
    static let timeBetweenCalls = Duration.microseconds(5)
    /// Who answers is done sooner. Who computes keeps the processor for its slice of it, which is milliseconds.
    private static let longestYield = limit
    /// For so many times as long as a lost yield took, there is none: so it costs less than a hundredth.
    private static let restAfterLoss = 256
    private static let fewest = 4
    private static let most = 1024

    private var shortGaps = 0
    /// So many short gaps in a row must have been seen: doubled by each spin that failed, halved by each that paid.
    private var needed = Self.fewest
    private var yieldsAtOnce = false
    private var restEnd = MonotonicInstant.distantPast

    /// Whether the next wait is worth a spin.
    var expectsShortWait: Bool { shortGaps >= needed }

    /// After how much time a spin that begins now yields first; nil when it is not to.
    func firstYield(at now: MonotonicInstant) -> Duration? {
        if now < restEnd { return nil }
        return yieldsAtOnce ? .zero : Self.timeBetweenCalls
    }

    /// Learns from a wait that has ended.
    ///
    /// - Parameters:
    ///   - gap: how long it took.
    ///   - spin: whether it spun, and what for.
    mutating func didWait(_ gap: Duration, _ spin: Spin) {
        switch spin {
        case .paid:
            needed = max(Self.fewest, needed / 2)
            shortGaps = needed
        case .failed:
            needed = min(Self.most, needed * 2)
            shortGaps = 0
        case .none:
            shortGaps = gap < Self.shortGap ? min(shortGaps + 1, Self.most) : 0
        }
    }

    /// Learns from the last yield of a spin.
    mutating func didYield(_ yield: Yield, until now: MonotonicInstant) {
        switch yield {
        case .none: break
        case .paid: yieldsAtOnce = true
        case .vain: yieldsAtOnce = false
        case .lost(let time):
            yieldsAtOnce = false
            restEnd = now.advanced(by: time * Self.restAfterLoss)
        }
    }
}
