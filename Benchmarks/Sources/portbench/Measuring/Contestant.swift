// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A contestant does an operation many times and returns how long that took.
struct Contestant {
    var name: String
    /// Whether single operations can be timed.
    var timesLaps = true
    /// Does it `count` times. With laps, records the time of each.
    ///
    /// Returns the nanoseconds that all took.
    let run: (_ count: Int, _ laps: Laps?) throws -> Int64
    /// Ends its threads and processes.
    var end: () -> Void = {}

    /// The same under another name, where two contestants of a case have ports.
    func named(_ name: String) -> Contestant {
        var renamed = self
        renamed.name = name
        return renamed
    }

    /// Whether a name is that of a contestant of plain system calls or memory, written in C.
    static func isBare(_ name: String) -> Bool { name.hasPrefix("bare ") }
}

/// Something that the system does not give or allow, so that a case cannot be measured on it.
struct NotAvailable: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A measurement that did not come to its end.
struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
