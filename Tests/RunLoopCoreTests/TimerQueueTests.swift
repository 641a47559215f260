// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Testing

@testable import RunLoopCore

@Suite struct TimerQueueTests {
    private func at(_ seconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(seconds) * 1_000_000_000)
    }

    private func schedule(_ seconds: Int, every interval: Duration? = nil, tolerance: Duration = .zero) -> TimerSchedule
    {
        TimerSchedule(fireDate: at(seconds), interval: interval, tolerance: tolerance)
    }

    @Test("due timers come by date, equal dates by creation")
    func due() {
        let ids = (0..<4).map { _ in ItemID() }
        var queue = TimerQueue()
        queue.arm(ids[3], schedule(5))
        queue.arm(ids[1], schedule(5))
        queue.arm(ids[2], schedule(3))
        queue.arm(ids[0], schedule(6))
        #expect(queue.due(at: at(5)) == [ids[2], ids[1], ids[3]])
        #expect(!queue.isDue(at: at(2)))
        #expect(queue.nextFireDate == at(3))
        queue.disarm(ids[2])
        #expect(queue.nextFireDate == at(5))
    }

    @Test("a wake-up is postponed to the earliest of the latest dates, so that tolerances share it")
    func tolerance() {
        var queue = TimerQueue()
        queue.arm(ItemID(), schedule(10, tolerance: .seconds(10)))
        queue.arm(ItemID(), schedule(12, tolerance: .seconds(2)))
        #expect(queue.wakeDate == at(14))
        #expect(queue.due(at: at(14)).count == 2)
    }

    @Test("a timer that missed firings goes on at the next date of its phase")
    func phase() {
        var timer = schedule(100, every: .seconds(10))
        timer.advance(past: at(99))
        #expect(timer.fireDate == at(100))
        timer.advance(past: at(100))
        #expect(timer.fireDate == at(110))
        timer.advance(past: at(147))
        #expect(timer.fireDate == at(150))
    }

    @Test("dates at the ends of the range saturate")
    func range() {
        var past = TimerSchedule(fireDate: .distantPast, interval: .nanoseconds(1), tolerance: .zero)
        past.advance(past: at(1))
        #expect(past.fireDate == MonotonicInstant(nanoseconds: 1_000_000_001))
        var long = TimerSchedule(fireDate: at(1), interval: .nanoseconds(Int64.max), tolerance: .zero)
        long.advance(past: at(2))
        #expect(long.fireDate == .distantFuture)
        long.advance(past: at(3))
        #expect(long.fireDate == .distantFuture)
        var tiny = TimerSchedule(
            fireDate: at(1), interval: Duration(secondsComponent: 0, attosecondsComponent: 1), tolerance: .zero)
        tiny.advance(past: at(1))
        #expect(tiny.fireDate > at(1))
    }

    @Test("tolerance is at least zero, and at most half the interval")
    func toleranceLimits() {
        #expect(schedule(1, every: .seconds(4), tolerance: .seconds(9)).tolerance == .seconds(2))
        #expect(schedule(1, tolerance: .seconds(9)).tolerance == .seconds(9))
        #expect(schedule(1, tolerance: .seconds(-1)).tolerance == .zero)
        var timer = schedule(1, every: .seconds(4))
        timer.tolerance = .seconds(3)
        #expect(timer.latestDate == at(3))
    }
}
