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
            self = time > SpinPredictor.longestYield ? .lost(time) : hasPaid() ? .paid : .wasted
        }

        var isLost: Bool { if case .lost = self { true } else { false } }
    }

    /// A sleeping peer needs 20 to 80 µs to wake, more on a virtual machine, so its answer arrives within this time.
    static let limit = Duration.microseconds(100)
    /// A round trip between two sleeping threads takes 50 to 165 µs, plus noise.
    private static let shortGap = Duration.microseconds(250)
    /// A round trip between two processors takes less: it makes no system call.
    static let timeBetweenCalls = Duration.microseconds(5)
    /// A thread that only answers is done sooner. One that computes keeps the processor for its time slice:
    /// milliseconds.
    private static let longestYield = limit
    /// After a lost yield there is none for this multiple of its duration: so lost yields cost less than a hundredth.
    private static let restAfterLoss = 256
    private static let fewest = 4
    private static let most = 1024

    private var shortGaps = 0
    /// How many short gaps in a row a spin requires: doubled by each spin that failed, halved by each that paid.
    private var needed = Self.fewest
    private var yieldsAtOnce = false
    private var restEnd = MonotonicInstant.distantPast

    /// Whether the next wait is worth a spin.
    var expectsShortWait: Bool { shortGaps >= needed }

    /// How long a spin that begins now waits before its first yield; nil when it must not yield.
    func firstYield(at now: MonotonicInstant) -> Duration? {
        if now < restEnd { return nil }
        return yieldsAtOnce ? .zero : Self.timeBetweenCalls
    }

    /// Learns from a wait that has ended.
    ///
    /// - Parameters:
    ///   - gap: how long it took.
    ///   - spin: whether it spun, and whether that paid.
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
        case .wasted: yieldsAtOnce = false
        case .lost(let time):
            yieldsAtOnce = false
            restEnd = now.advanced(by: time * Self.restAfterLoss)
        }
    }
}
