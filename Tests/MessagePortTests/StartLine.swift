// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import Synchronization
import TestSupport
import Testing

/// Runs `body` on `count` threads, which all start at the same moment, and waits for them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (_ thread: Int) -> Void) throws {
    let start = StartLine(count)
    let threads = (0..<count).map { thread in
        runOnThread {
            start.wait()
            body(thread)
        }
    }
    for thread in threads { try thread.join() }
}

/// Where threads wait for each other by spinning, so that they leave as nearly together as they can.
final class StartLine: Sendable {
    private let missing: Atomic<Int>

    init(_ count: Int) {
        missing = Atomic(count)
    }

    /// Arrives, and waits for the others.
    func wait() {
        missing.subtract(1, ordering: .acquiringAndReleasing)
        while missing.load(ordering: .acquiring) > 0 { sched_yield() }
    }
}
