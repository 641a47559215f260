// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import Glibc
import Synchronization

/// What dispatch and Swift's tasks make once per process and keep.
enum Pools {
    private static let areStarted = Mutex(false)

    /// Makes it now: dispatch's manager thread, its epoll set and eventfd, and a timer descriptor for each of its clocks.
    static func start() async {
        if areStarted.withLock({ $0 }) { return }
        try? await Task.sleep(for: .nanoseconds(1), clock: .continuous)
        try? await Task.sleep(for: .nanoseconds(1), clock: .suspending)
        let queue = DispatchQueue.global()
        await withCheckedContinuation { done in
            queue.asyncAfter(deadline: .now() + .nanoseconds(1)) { done.resume() }
        }
        await withCheckedContinuation { done in
            queue.asyncAfter(wallDeadline: .now() + .nanoseconds(1)) { done.resume() }
        }
        areStarted.withLock { $0 = true }
    }
}

/// Lets another thread run.
func yieldThread() {
    sched_yield()
}
