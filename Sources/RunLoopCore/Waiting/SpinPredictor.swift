// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Guesses from the last waits of a mode whether the next one is so short that spinning beats sleeping.
struct SpinPredictor: Sendable {
    /// What a wait did before it ended.
    enum Spin: Sendable {
        case none, paid, failed
    }

    /// A sleeping peer needs 20 to 80 µs to wake, the longer on a virtual machine, so an answer from one comes within this
    /// time.
    static let limit = Duration.microseconds(100)
    /// A round trip between two sleeping threads takes 50 to 165 µs, and noise on top.
    private static let shortGap = Duration.microseconds(250)
    private static let fewest = 4
    private static let most = 1024

    private var shortGaps = 0
    /// So many short gaps in a row must have been seen: doubled by each spin that failed, halved by each that paid.
    private var needed = Self.fewest

    /// Whether the next wait is worth a spin.
    var expectsShortWait: Bool { shortGaps >= needed }

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
}
