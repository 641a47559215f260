// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls

/// Runs `body` `count` times on this thread, and returns how long that took.
func timed(_ count: Int, _ laps: Laps?, _ body: () throws -> Void) rethrows -> Int64 {
    let start = bare_now()
    var last = start
    for _ in 0..<count {
        try body()
        guard let laps else { continue }
        let now = bare_now()
        laps.note(now - last)
        last = now
    }
    return bare_now() - start
}
