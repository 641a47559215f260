// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch

/// Counts messages where they arrive, until all have arrived.
///
/// @unchecked: from `run`'s `send` until `finished` is signalled only the receiving thread uses the variables.
final class ArrivalCounter: @unchecked Sendable {
    private var left = 0
    private var end: Int64 = 0
    private var start: Int64 = 0
    private var first: Int64 = 0
    private let finished = DispatchSemaphore(value: 0)

    /// Sends `count` messages, waits until they have arrived, and returns the nanoseconds from the first to the last.
    func run(_ count: Int, send: (Int) throws -> Void) throws -> Int64 {
        (left, first) = (count, 0)
        start = bare_now()
        try send(count)
        guard finished.wait(timeout: .now() + 120) == .success else { throw BenchmarkFailure("no arrival for 120 s") }
        return end - start
    }

    /// The nanoseconds until the first message of the last run arrived.
    var firstTime: Int64 { first - start }

    /// Records an arrival.
    func arrived() {
        if first == 0 { first = bare_now() }
        left -= 1
        if left == 0 { allArrived() }
    }

    /// Records that all have arrived, for a receiver that counts by itself.
    func allArrived() {
        end = bare_now()
        finished.signal()
    }
}
