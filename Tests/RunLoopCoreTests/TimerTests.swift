// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct TimerTests {
    @Test("S6: due timers fire in one pass: by order, then date, then creation")
    func order() async throws {
        let trace = Recorder<Int>()
        try await onLoop { loop in
            let now = MonotonicInstant.now
            let timers = [(5, 1), (3, 0), (3, 0), (1, 0), (9, -1)].enumerated().map { number, timer in
                RunLoopTimer(fireDate: now.advanced(by: .seconds(timer.0 - 10)), order: timer.1) { _ in
                    trace.append(number)
                }
            }
            for timer in timers.reversed() { loop.add(timer) }
            #expect(loop.nextTimerFireDate() == now.advanced(by: .seconds(-9)))
            #expect(loop.runGuarded() == .finished)
            #expect(loop.passCount == 1)
            #expect(timers.map(\.isValid) == [false, false, false, false, false])
        }
        #expect(trace.elements == [4, 3, 1, 2, 0])
    }

    @Test("S6: a repeating timer that is late fires once and keeps its phase")
    func phase() async throws {
        try await onLoop { loop in
            let start = MonotonicInstant.now.advanced(by: .seconds(-3600))
            let fired = Counter("firings")
            let timer = RunLoopTimer(fireDate: start, interval: .seconds(100)) { _ in fired.increment() }
            loop.add(timer)
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(fired.value == 1)
            #expect(timer.fireDate > .now)
            #expect((timer.fireDate.nanoseconds - start.nanoseconds) % 100_000_000_000 == 0)
            #expect(timer.isValid)
        }
    }

    @Test("S6: a timer in several modes fires once per date")
    func modes() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let timer = RunLoopTimer(fireDate: .distantPast) { _ in trace.append(loop.currentMode?.description ?? "") }
            for mode in ["a", "b"] as [RunLoopMode] { loop.add(timer, to: mode) }
            #expect(loop.runGuarded(mode: "b") == .finished)
            #expect(loop.run(mode: "a", for: .zero) == .finished)
        }
        #expect(trace.elements == ["b"])
    }

    @Test("S6: setting the date from another thread takes effect while the loop sleeps")
    func reschedule() async throws {
        try await onLoop { loop in
            let timer = RunLoopTimer(fireDate: .distantFuture) { _ in loop.stop() }
            loop.add(timer)
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let other = runOnThread {
                asleep.wait()
                timer.setNextFireDate(.now)
            }
            #expect(loop.runGuarded() == .stopped)
            try other.join()
        }
    }

    @Test("a date set inside of the call is the next; a one-shot timer ends nevertheless")
    func rescheduleInside() async throws {
        try await onLoop { loop in
            let date = MonotonicInstant.now.advanced(by: .seconds(12_345))
            let repeating = RunLoopTimer(fireDate: .distantPast, interval: .seconds(1)) {
                #expect($0.fireDate == .distantPast)
                $0.setNextFireDate(date)
            }
            let once = RunLoopTimer(fireDate: .distantPast) {
                #expect($0.isValid)
                $0.setNextFireDate(date)
            }
            loop.add(repeating)
            loop.add(once)
            loop.run(for: .zero)
            #expect(repeating.fireDate == date && repeating.isValid)
            #expect(!once.isValid)
            #expect(loop.nextTimerFireDate() == date)
        }
    }

    @Test("a timer that an earlier one invalidates, removes or postpones does not fire")
    func recheck() async throws {
        try await onLoop { loop in
            let victims = (0..<3).map { _ in
                RunLoopTimer(fireDate: .distantPast, order: 1) { _ in Issue.record("fired") }
            }
            loop.add(
                RunLoopTimer(fireDate: .distantPast) { _ in
                    victims[0].invalidate()
                    loop.remove(victims[1])
                    victims[2].setNextFireDate(.distantFuture)
                })
            for victim in victims { loop.add(victim) }
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            #expect(loop.contains(victims[2]) && !loop.contains(victims[1]))
        }
    }

    @Test("a due timer that an earlier one makes due again still fires in the same pass")
    func madeDueAnew() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let second = RunLoopTimer(fireDate: .distantPast, order: 1) { _ in trace.append("second") }
            loop.add(
                RunLoopTimer(fireDate: .distantPast) { _ in
                    trace.append("first")
                    second.setNextFireDate(.now)
                })
            loop.add(second)
            #expect(loop.runGuarded() == .finished)
            #expect(loop.passCount == 1)
        }
        #expect(trace.elements == ["first", "second"])
    }

    @Test("S12: a firing timer is not fired again by a nested run; others are")
    func nested() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.add(
                RunLoopTimer(fireDate: .distantPast, interval: .nanoseconds(1)) { timer in
                    trace.append("outer")
                    #expect(loop.run(for: .milliseconds(5)) == .timedOut)
                    timer.invalidate()
                })
            loop.add(RunLoopTimer(after: .milliseconds(1), order: 1) { _ in trace.append("inner") })
            loop.run(for: .zero)
        }
        #expect(trace.elements == ["outer", "inner"])
    }

    @Test("timers whose tolerances overlap share one wake-up, and none fires early")
    func tolerance() async throws {
        let deadline = Watchdog.deadline
        // On a machine that was too busy the first is due before the loop could sleep.
        while try await !onLoop(Self.firesThree) {
            if .now >= deadline { return Watchdog.expired("a loop that sleeps until its timers are due") }
        }
    }

    /// - Returns: whether the loop slept.
    private static func firesThree(_ loop: ThreadRunLoop) throws -> Bool {
        let start = MonotonicInstant.now
        let fired = Recorder<(date: MonotonicInstant, waits: Int)>()
        for milliseconds in [500, 550, 600] {
            let date = start.advanced(by: .milliseconds(milliseconds))
            loop.add(
                RunLoopTimer(fireDate: date, tolerance: .milliseconds(150)) {
                    fired.append((.now, loop.kernelWaitCount))
                    #expect(.now >= $0.fireDate)
                })
        }
        #expect(loop.runGuarded() == .finished)
        #expect(fired.count == 3)
        guard fired.elements.first?.waits != 0 else { return false }
        #expect(loop.kernelWaitCount == 1)
        #expect(fired.elements.allSatisfy { $0.date >= start.advanced(by: .milliseconds(650)) })
        return true
    }

    @Test("removing a timer leaves no wake-up at its old date")
    func noSpuriousWakeUp() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            let fired = Counter("firings")
            let timer = RunLoopTimer(after: .milliseconds(50)) { _ in fired.increment() }
            loop.add(timer)
            let date = timer.fireDate
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let remover = runOnThread {
                asleep.wait()
                loop.remove(timer)
                return MonotonicInstant.now
            }
            loop.run(until: date.advanced(by: .milliseconds(50)))
            // On a machine that was too busy to remove it in time, the timer has fired rightly, or the loop did not
            // even sleep.
            asleep.open()
            if try remover.join() < date {
                #expect(loop.passCount == 1)
                #expect(fired.value == 0)
            }
        }
    }
}
