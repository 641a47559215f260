// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The statistics of a list of numbers.
struct Statistics {
    var median = 0.0
    /// The least of the values that nine of ten do not exceed.
    var nineOfTen = 0.0
    var p99 = 0.0
    var minimum = 0.0
    var maximum = 0.0

    init(_ values: [Double]) {
        let sorted = values.sorted()
        guard let first = sorted.first, let last = sorted.last else { return }
        func at(_ part: Double) -> Double { sorted[Int((Double(sorted.count - 1) * part).rounded())] }
        (median, p99, minimum, maximum) = (at(0.5), at(0.99), first, last)
        nineOfTen = sorted[(sorted.count * 9 + 9) / 10 - 1]
    }
}

/// The numbers of one contestant: each is nanoseconds per operation, or a count.
struct Score {
    /// The median of the rounds, each the mean over its operations.
    var value: Double
    /// Single operations where they can be timed; rounds otherwise.
    var spread: Statistics

    init(rounds: [Double], laps: [Double]) {
        value = Statistics(rounds).median
        spread = Statistics(laps.isEmpty ? rounds : laps)
    }

    /// A number that was counted once.
    init(_ value: Double) {
        self.init(rounds: [value], laps: [])
    }
}
