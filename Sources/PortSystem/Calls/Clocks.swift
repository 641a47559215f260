// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// The time since the machine's boot, including sleep: `CLOCK_BOOTTIME`.
package func sysTimeSinceBoot() -> Duration {
    time(CLOCK_BOOTTIME)
}

/// The time since 1970 in UTC: `CLOCK_REALTIME`.
package func sysWallTime() -> Duration {
    time(CLOCK_REALTIME)
}

/// The time since 1970 in UTC of a past event, by the wall clock as it is set now, to a millisecond. When the thread
/// was preempted between two clock readings, it repeats them, up to ten times.
///
/// - Parameter age: how long ago the event was, by another clock.
/// - Returns: the time.
package func sysWallTime(before age: () -> Duration) -> Duration {
    var time = Duration.zero
    for _ in 0..<10 {
        let past = age()
        time = sysWallTime() - past
        if age() - past < .milliseconds(1) { break }
    }
    return time
}

private func time(_ clock: clockid_t) -> Duration {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

/// Suspends the thread for a while; a signal may end that earlier.
///
/// - Parameter duration: less than a second.
package func sysSleep(_ duration: Duration) { usleep(useconds_t(clamping: duration.nanoseconds / 1000)) }
