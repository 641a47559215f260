// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch

/// Counts messages where they arrive, until all have arrived.
///
/// @unchecked: from `run`'s `send` until `finished` is signalled only the receiving thread uses `left` and `end`.
final class ArrivalCounter: @unchecked Sendable {
    private var left = 0
    private var end: Int64 = 0
    private let finished = DispatchSemaphore(value: 0)

    /// Sends `count` messages, waits until they have arrived, and returns the nanoseconds from the first to the last.
    func run(_ count: Int, send: (Int) throws -> Void) throws -> Int64 {
        left = count
        let start = bare_now()
        try send(count)
        guard finished.wait(timeout: .now() + 120) == .success else { throw BenchmarkFailure("no arrival for 120 s") }
        return end - start
    }

    /// Records an arrival.
    func arrived() {
        left -= 1
        if left == 0 { allArrived() }
    }

    /// Records that all have arrived, for a receiver that counts by itself.
    func allArrived() {
        end = bare_now()
        finished.signal()
    }
}
