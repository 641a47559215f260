// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a number counts. Contestants measure nanoseconds, or whole things.
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

/// What a case is to reach: a number, a ratio to its baseline, or both.
struct Goal: Codable {
    /// At most so much, in the case's unit.
    var value: Double?
    /// At most so many times the baseline. Beside a time it says the same on a machine of another speed: it is that time in
    /// relation to what the baseline took where the goal was set.
    var ratio: Double?
}
