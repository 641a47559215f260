// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct ObserverTests {
    @Test("S7: observers run by order, equal ones as they were added, and do not keep a mode alive")
    func order() async throws {
        let trace = Recorder<Int>()
        try await onLoop { loop in
            for (number, order) in [(1, 0), (2, 5), (3, 0), (4, -5)] {
                loop.add(
                    RunLoopObserver(activities: .entry, order: order) { _, activity in
                        #expect(activity == .entry)
                        trace.append(number)
                    })
            }
            #expect(loop.run(for: .zero) == .finished)
            #expect(trace.elements.isEmpty)
            loop.add(idleSource())
            loop.run(for: .zero)
        }
        #expect(trace.elements == [4, 1, 3, 2])
    }

    @Test("S7: an observer that is not repeating is called once and is invalid after it")
    func once() async throws {
        try await onLoop { loop in
            let calls = Counter("calls")
            let observer = RunLoopObserver(activities: .all, repeats: false) { observer, _ in
                #expect(observer.isValid)
                calls.increment()
            }
            loop.add(observer)
            loop.add(idleSource())
            loop.run(for: .zero)
            #expect(calls.value == 1)
            #expect(!observer.isValid && !loop.contains(observer))
        }
    }

    @Test("an observer added during an activity waits for the next one; one removed during it is not called")
    func snapshot() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.add(idleSource())
            let victim = RunLoopObserver(activities: .beforeTimers, order: 2) { _, _ in trace.append("victim") }
            let late = RunLoopObserver(activities: .beforeTimers, order: 1) { _, _ in trace.append("late") }
            loop.add(
                RunLoopObserver(activities: .beforeTimers, repeats: false) { _, _ in
                    loop.remove(victim)
                    loop.add(late)
                })
            loop.add(victim)
            loop.run(for: .zero)
            #expect(trace.elements.isEmpty)
            loop.run(for: .zero)
        }
        #expect(trace.elements == ["late"])
    }

    @Test("S12: an observer whose handler is running is skipped by a nested run")
    func nested() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(RunLoopObserver(activities: .beforeSources, order: 0) { _, _ in trace.append("low") })
            loop.add(
                RunLoopObserver(activities: .beforeSources, order: 1) { _, _ in
                    trace.append("nesting")
                    loop.run(for: .zero)
                })
            loop.add(RunLoopObserver(activities: .beforeSources, order: 2) { _, _ in trace.append("high") })
            loop.run(for: .zero)
        }
        #expect(trace.elements == ["low", "nesting", "low", "high", "high"])
    }

    @Test("S3: a run in another mode calls that mode's observers: exit 128, entry 1")
    func changeOfMode() async throws {
        let trace = Recorder<UInt>()
        try await onLoop { loop in
            let observer = RunLoopObserver(activities: [.entry, .exit]) { _, activity in trace.append(activity.rawValue)
            }
            for mode in [RunLoopMode.default, .eventTracking] {
                loop.add(idleSource(), to: mode)
                loop.add(observer, to: mode)
                loop.run(mode: mode, for: .zero)
            }
        }
        #expect(trace.elements == [1, 128, 1, 128])
    }

    @Test("a wake-up during an observer of the pass keeps the pass from sleeping")
    func wakeUpInPass() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            let passes = Counter("passes")
            loop.add(
                RunLoopObserver(activities: .beforeTimers) { _, _ in
                    if passes.increment() == 2 { loop.stop() } else { loop.wakeUp() }
                })
            #expect(loop.runGuarded() == .stopped)
        }
    }

    @Test("a wake-up before the run, or while an event is handled, does not count")
    func ignoredWakeUp() async throws {
        try await onLoop { loop in
            loop.wakeUp()
            let mailbox = Mailbox { _ in loop.wakeUp() }
            loop.add(mailbox.source)
            mailbox.put(1)
            #expect(loop.run(for: .milliseconds(5)) == .timedOut)
            #expect(loop.passCount <= 2)  // a third would be the wake-up's
        }
    }

    @Test("a wake-up in an observer of entry keeps the first pass from sleeping")
    func wakeUpAtEntry() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(RunLoopObserver(activities: .entry) { _, _ in loop.wakeUp() })
            let passes = Counter("passes")
            loop.add(
                RunLoopObserver(activities: .beforeTimers) { _, _ in if passes.increment() == 2 { loop.stop() } })
            #expect(loop.runGuarded() == .stopped)
            #expect(passes.value == 2)
        }
    }

    @Test("a wake-up that a nested run did not use keeps the outer pass from sleeping")
    func wakeUpAroundNesting() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(idleSource(), to: "inner")
            let passes = Counter("passes")
            loop.add(
                RunLoopObserver(activities: .beforeTimers) { _, _ in
                    if passes.increment() == 2 { return loop.stop() }
                    loop.wakeUp()
                    loop.run(mode: "inner", for: .zero)
                })
            #expect(loop.runGuarded() == .stopped)
        }
    }
}
