// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch

/// Counts the round trips of one run, on the thread on which they end.
///
/// @unchecked: from `begin` until `finished` is signalled only the thread on which the answers arrive uses it; before
/// and after that only the thread that waits for them.
final class Rally: @unchecked Sendable {
    private var left = 0
    private var start: Int64 = 0
    private var last: Int64 = 0
    private var time: Int64 = 0
    private var laps: Laps?
    private var failure: (any Error)?
    private let finished = DispatchSemaphore(value: 0)

    /// Runs `count` round trips, and returns the nanoseconds they took.
    ///
    /// `serve` starts the first one: it has `begin` called on the thread on which the answers arrive.
    func run(_ count: Int, _ laps: Laps?, serve: () throws -> Void) throws -> Int64 {
        (left, self.laps, failure) = (count, laps, nil)
        try serve()
        guard finished.wait(timeout: .now() + 120) == .success else { throw BenchmarkFailure("no answer for 120 s") }
        if let failure { throw failure }
        return time
    }

    /// Starts the clock and the first round trip.
    func begin(_ send: () throws -> Void) {
        start = bare_now()
        last = start
        attempt(send)
    }

    /// Records an answer, and sends again unless it was the last.
    func answered(_ send: () throws -> Void) {
        if let laps {
            let now = bare_now()
            laps.note(now - last)
            last = now
        }
        left -= 1
        if left > 0 { return attempt(send) }
        time = bare_now() - start
        finished.signal()
    }

    private func attempt(_ send: () throws -> Void) {
        do {
            try send()
        } catch {
            failure = error
            finished.signal()
        }
    }
}
