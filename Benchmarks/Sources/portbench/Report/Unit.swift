// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The unit of a number. Contestants measure nanoseconds, or count.
enum Unit: String, Codable {
    case nanoseconds = "ns"
    case microseconds = "µs"
    case bytes
    case perMessage = "per message"
    case wakeUps = "wake-ups"
    case descriptors

    func value(_ measured: Double) -> Double {
        self == .microseconds ? measured / 1000 : measured
    }
}

/// The goal of a case: a number, a ratio to its baseline, or both.
struct Goal: Codable {
    /// The largest value, in the case's unit.
    var value: Double?
    /// The largest multiple of the baseline. Beside a time it says the same on a machine of another speed: it is that
    /// time divided by the baseline's on the machine for which the goal was set.
    var ratio: Double?
}
