// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import Glibc
import PortSystem
import Synchronization

/// What dispatch and Swift's tasks make once per process and retain. The leak check starts them; an exit test that
/// counts descriptors itself, or lowers their limit, starts the pools first.
package enum Pools {
    private struct State {
        var timers: [any DispatchSourceTimer] = []
    }

    private static let state = Mutex(State())

    /// Starts them now: dispatch's manager thread, its epoll set and eventfd, and a timer descriptor for each of its
    /// clocks.
    ///
    /// A timer that is due at once needs no descriptor, so these are due in a day. Dispatch keeps the descriptors open.
    package static func start() async {
        let isFirst = state.withLock { state in
            if !state.timers.isEmpty { return false }
            state.timers = [DispatchSource.makeTimerSource(), DispatchSource.makeTimerSource()]
            state.timers[0].schedule(deadline: .now() + .seconds(86_400))
            state.timers[1].schedule(wallDeadline: .now() + .seconds(86_400))
            for timer in state.timers { timer.activate() }
            return true
        }
        if !isFirst { return }
        Task.detached { try await Task.sleep(for: .seconds(86_400), clock: .continuous) }
        Task.detached { try await Task.sleep(for: .seconds(86_400), clock: .suspending) }
        // Dispatch arms them on a thread of its own.
        let deadline = Watchdog.deadline
        while openDescriptors().filter({ $0.hasSuffix("[timerfd]") }).count < clockCount, .now < deadline {
            await Task.yield()
        }
    }

    /// Dispatch's clocks: uptime, monotonic and wall.
    private static let clockCount = 3
}

/// Lets another thread run.
package func yieldThread() {
    sched_yield()
}
