// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@testable import RunLoopCore

/// What is wrong on purpose gets a clear result. Traps are in `CrashTests/RunLoopTrapTests.swift`, closed descriptors
/// in `DescriptorSourceTests.swift`, loops whose threads have ended in `LoopThreadTests.swift`.
@Suite(.leakCheck) struct BadInputTests {
    @Test("a limit in the past polls once, however far back it is")
    func pastLimits() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            for limit in [Duration.zero, .nanoseconds(-1), .seconds(-1), .seconds(Int64.min)] {
                #expect(loop.run(for: limit) == .timedOut)
            }
            for date in [MonotonicInstant.distantPast, MonotonicInstant(nanoseconds: 0), .now] {
                #expect(loop.run(until: date) == .timedOut)
            }
            #expect(loop.kernelWaitCount == 0)
        }
    }

    @Test("a limit beyond the range of the clock is no limit")
    func endlessLimits() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            for limit in [Duration.seconds(Int64.max), .seconds(20_000_000_000)] {
                let waiting = Gate("a wait")
                let observer = RunLoopObserver(activities: .beforeWaiting) { _, _ in waiting.open() }
                loop.add(observer)
                let stopper = runOnThread {
                    waiting.wait()
                    loop.stop()
                }
                #expect(loop.run(for: limit) == .stopped)
                try stopper.join()
                observer.invalidate()
            }
        }
    }

    @Test("a timer's date, interval and tolerance may be at the ends of the range")
    func timersAtTheEnds() async throws {
        try await onLoop { loop in
            let fired = Recorder<String>()
            let longest = Duration.seconds(Int64.max)
            let past = RunLoopTimer(fireDate: .distantPast, interval: longest, tolerance: longest) { _ in
                fired.append("past")
            }
            let never = RunLoopTimer(fireDate: .distantFuture, interval: .nanoseconds(1)) { _ in fired.append("never") }
            let far = RunLoopTimer(after: longest, tolerance: .seconds(Int64.min)) { _ in fired.append("far") }
            let often = RunLoopTimer(fireDate: .distantPast, interval: .nanoseconds(1)) { timer in
                fired.append("often")
                timer.invalidate()
            }
            for timer in [past, never, far, often] { loop.add(timer) }
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(fired.elements == ["past", "often"])
            #expect(never.fireDate == .distantFuture)
            #expect(far.fireDate == .distantFuture)
            #expect(past.fireDate > .after(.seconds(1_000_000_000)), "its phase is beyond this century")
            for timer in [past, never, far] { timer.invalidate() }
        }
    }

    @Test("everything may invalidate itself inside of its own callout, and is called once")
    func selfInvalidation() async throws {
        try await onLoop { loop in
            let calls = Recorder<String>()
            let holder = LoopBound<[RunLoopSource]>([])
            let custom = RunLoopSource {
                calls.append("custom")
                holder.value[0].invalidate()
                holder.value[0].signal()
            }
            let portBased = RunLoopSource(readiness: { true }) {
                calls.append("port-based")
                holder.value[1].invalidate()
                holder.value[1].ring()
            }
            holder.value = [custom, portBased]
            loop.add(custom)
            loop.add(portBased)
            loop.add(
                RunLoopTimer(fireDate: .distantPast, interval: .nanoseconds(1)) { timer in
                    calls.append("timer")
                    timer.invalidate()
                    timer.setNextFireDate(.distantPast)
                })
            loop.add(
                RunLoopObserver(activities: .all) { observer, _ in
                    calls.append("observer")
                    observer.invalidate()
                })
            custom.signal()
            #expect(loop.runGuarded() == .finished)
            #expect(calls.elements.sorted() == ["custom", "observer", "port-based", "timer"])
            #expect(!custom.isValid && !portBased.isValid)
            holder.value = []
        }
    }

    @Test("what is invalid cannot be added, and adding it is no item that keeps a run going")
    func addingTheInvalid() async throws {
        try await onLoop { loop in
            let (source, timer) = (idleSource(), RunLoopTimer(after: .zero) { _ in })
            let observer = RunLoopObserver(activities: .all) { _, _ in }
            source.invalidate()
            timer.invalidate()
            observer.invalidate()
            for mode in [RunLoopMode.default, .common, "other"] {
                loop.add(source, to: mode)
                loop.add(timer, to: mode)
                loop.add(observer, to: mode)
                #expect(!loop.contains(source, in: mode))
                #expect(!loop.contains(timer, in: mode))
                #expect(!loop.contains(observer, in: mode))
            }
            #expect(loop.runGuarded() == .finished)
        }
    }

    @Test("what is not there can be removed, asked for and cancelled")
    func removingTheAbsent() async throws {
        try await onLoop { loop in
            let (source, timer) = (idleSource(), RunLoopTimer(after: .zero) { _ in })
            loop.remove(source)
            loop.remove(source, from: .common)
            loop.remove(timer, from: "unknown")
            #expect(!loop.contains(source, in: "unknown"))
            #expect(loop.nextTimerFireDate(in: "unknown") == nil)
            #expect(loop.nextTimerFireDate(in: .common) == nil)
            #expect(loop.allModes == [.default])
            #expect(source.isValid && timer.isValid)
        }
    }

    @Test("a block for no mode is never called, keeps no run going, and is released with the loop")
    func blockForNoMode() async throws {
        let (called, released) = (Counter("calls"), Counter("releases"))
        try await onLoop { loop in
            let token = Token { released.increment() }
            loop.perform(in: []) { [token] in
                _ = token
                called.increment()
            }
            #expect(loop.runGuarded() == .finished)
            #expect(loop.run(mode: .common, for: .zero) == .finished)
        }
        #expect(called.value == 0)
        #expect(released.value == 1)
    }
}

/// Calls a closure when it is released.
private final class Token: Sendable {
    private let end: @Sendable () -> Void  // immutable

    init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    deinit { end() }
}
