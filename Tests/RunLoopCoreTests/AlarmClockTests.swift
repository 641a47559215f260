// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("AlarmClock", .leakCheck) struct AlarmClockTests {
    private let clock = AlarmClock()

    @Test("alarms act when they are due, not before, in whichever order they were set")
    func act() async {
        let fired = Recorder<Int>("alarms")
        let start = MonotonicInstant.now
        for number in [3, 1, 4, 2] {
            let deadline = start.advanced(by: .milliseconds(number))
            _ = clock.set(for: deadline) { if .now >= deadline { fired.append(number) } }
        }
        _ = clock.set(for: .distantPast) { fired.append(0) }
        await fired.waitUntilCount(5)
        #expect(fired.elements.sorted() == [0, 1, 2, 3, 4])
        #expect(clock.counts.alarms == 0)
    }

    @Test("an alarm at no date is none")
    func never() {
        #expect(clock.set(for: .distantFuture) {} == nil)
        clock.stop(nil)
        #expect(clock.counts == (0, 0))
    }

    @Test("what a stopped alarm holds is released, and it does not act")
    func stopped() async {
        final class Held: Sendable {}
        var fired = Recorder<Int>("alarms")
        weak var held: Held?
        var soon = MonotonicInstant.now
        // Until it was stopped before its date.
        repeat {
            fired = Recorder<Int>("alarms")
            soon = .after(.milliseconds(2))
            let made = Held()
            held = made
            clock.stop(clock.set(for: soon) { [fired] in withExtendedLifetime(made) { fired.append(1) } })
        } while .now >= soon
        #expect(held == nil)
        _ = clock.set(for: soon.advanced(by: .nanoseconds(1))) { [fired] in fired.append(2) }
        await fired.waitUntilCount(1)
        #expect(fired.elements == [2])
    }

    @Test("alarms that are stopped leave one sleep, however many they were")
    func oneSleep() {
        for _ in 0..<1000 { clock.stop(clock.set(for: .after(.seconds(3600))) {}) }
        #expect(clock.counts == (0, 1))
    }

    @Test("a sleep is begun only for an alarm that is due before all sleeps end")
    func sleeps() async {
        let start = MonotonicInstant.now
        for (minutes, sleeps) in [(60, 1), (30, 2), (45, 2), (90, 2), (10, 3)] {
            _ = clock.set(for: start.advanced(by: .seconds(60 * minutes))) {}
            #expect(clock.counts.sleeps == sleeps)
        }
        // One that has acted leaves the sleeps that there were.
        let fired = Counter("alarms")
        _ = clock.set(for: start) { fired.increment() }
        await fired.waitUntilCount(1)
        #expect(clock.counts == (5, 3))
    }

    @Test("alarms that are each due before all earlier ones act, and leave no sleep")
    func decreasing() async {
        let (fired, start) = (Counter("alarms"), MonotonicInstant.after(.milliseconds(20)))
        for number in 0..<200 {
            _ = clock.set(for: start.advanced(by: .microseconds(-50 * number))) { fired.increment() }
        }
        await fired.waitUntilCount(200)
        while clock.counts.sleeps > 0 { await Task.yield() }
        #expect(clock.counts == (0, 0))
    }

    @Test("threads that set and stop alarms concurrently, around the time at which they are due, lose none")
    func threads() async throws {
        let fired = Counter("alarms")
        let threads = (0..<4).map { thread in
            runOnThread {
                for number in 0..<200 {
                    _ = self.clock.set(for: .after(.microseconds(number % 7 * 100))) { fired.increment() }
                    self.clock.stop(self.clock.set(for: .after(.microseconds(number % 5 * 100))) {})
                }
            }
        }
        for thread in threads { try await thread.join() }
        await fired.waitUntilCount(800)
        #expect(clock.counts.alarms == 0)
    }
}
