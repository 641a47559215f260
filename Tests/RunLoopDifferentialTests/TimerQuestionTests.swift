// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Behaviours of timers that are no matter of traces.

import CoreFoundation
import Foundation
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct TimerQuestionTests {
    @Test(
        "CF 22, CF 33: the next date of a mode is the one that was given, also a past one; there is none without a timer"
    )
    func nextDate() async throws {
        try await onNewThread {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            #expect(CFRunLoopGetNextTimerFireDate(loop, Mode.default.name) == 0)
            #expect(CFRunLoopGetNextTimerFireDate(loop, Mode.ghost.name) == 0)
            let timer = CFRunLoopTimerCreateWithHandler(nil, 1000, 0, 0, 0) { _ in }
            CFRunLoopAddTimer(loop, timer, Mode.default.name)
            #expect(CFRunLoopGetNextTimerFireDate(loop, Mode.default.name) == 1000)
            CFRunLoopTimerInvalidate(timer)
            #expect(CFRunLoopGetNextTimerFireDate(loop, Mode.default.name) == 0)
        }
        try await onNewThread {
            let loop = ThreadRunLoop.current
            #expect(loop.nextTimerFireDate() == nil)
            #expect(loop.nextTimerFireDate(in: "ghost") == nil)
            let date = MonotonicInstant.after(.seconds(-1000))
            let timer = RunLoopTimer(fireDate: date) { _ in }
            loop.add(timer)
            #expect(loop.nextTimerFireDate() == date)
            timer.invalidate()
            #expect(loop.nextTimerFireDate() == nil)
        }
    }

    /// How long the first call of a timer lasts, and from when on the next ones may come.
    private static func isInPhase(_ firings: [MonotonicInstant], from start: MonotonicInstant) -> Bool {
        zip(firings.dropFirst(), [30, 40]).allSatisfy { $0 >= start.advanced(by: .milliseconds($1)) }
    }

    private static func spin(until date: MonotonicInstant) {
        while MonotonicInstant.now < date {}
    }

    @Test("CF 24: firings that were missed are one, and the phase stays")
    func phase() async throws {
        // The timer fires at 0, and its call lasts for two and a half intervals: the next firings are at 3 and 4.
        let interval = Duration.milliseconds(10)
        try await onNewThread {
            let firings = Recorder<MonotonicInstant>()
            let start = MonotonicInstant.now
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0.01, 0, 0) { _ in
                firings.append(.now)
                if firings.count == 1 { Self.spin(until: start.advanced(by: interval * 5 / 2)) }
                if firings.count == 3 { CFRunLoopStop(CFRunLoopGetCurrent()) }
            }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, Mode.default.name)
            #expect(runCoreFoundation(.default, 1e9) == .stopped)
            CFRunLoopTimerInvalidate(timer)
            #expect(Self.isInPhase(firings.elements, from: start))
        }
        try await onNewThread {
            let firings = Recorder<MonotonicInstant>()
            let start = MonotonicInstant.now
            let timer = RunLoopTimer(fireDate: start, interval: interval) { _ in
                firings.append(.now)
                if firings.count == 1 { Self.spin(until: start.advanced(by: interval * 5 / 2)) }
                if firings.count == 3 { ThreadRunLoop.current.stop() }
            }
            ThreadRunLoop.current.add(timer)
            #expect(ThreadRunLoop.current.run(mode: .default, until: .distantFuture) == .stopped)
            timer.invalidate()
            #expect(Self.isInPhase(firings.elements, from: start))
        }
    }

    @Test("CF 26: a one-shot timer that has fired has no next date")
    func noNextDate() async throws {
        try await onNewThread {
            let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, Mode.default.name)
            runCoreFoundation()
            #expect(CFRunLoopTimerGetNextFireDate(timer) == 0)
        }
        try await onNewThread {
            let timer = RunLoopTimer(fireDate: .distantPast) { _ in }
            ThreadRunLoop.current.add(timer)
            ThreadRunLoop.current.run(for: .zero)
            #expect(!timer.isValid && ThreadRunLoop.current.nextTimerFireDate() == nil)
        }
    }

    @Test("CF 28, D16: a tolerance is not stored")
    func tolerance() {
        let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 3600, 0, 0) { _ in }
        CFRunLoopTimerSetTolerance(timer, 5)
        #expect(CFRunLoopTimerGetTolerance(timer) == 0)
        let own = RunLoopTimer(after: .seconds(3600), interval: .seconds(3600)) { _ in }
        own.tolerance = .seconds(5)
        #expect(own.tolerance == .seconds(5))
    }

    @Test("CF 31, D29: a date after the year 2128 is cut off")
    func lateDate() {
        let timer = CFRunLoopTimerCreateWithHandler(nil, 1e12, 0, 0, 0) { _ in }
        #expect(CFRunLoopTimerGetNextFireDate(timer) == 4_039_289_856)
        let date = MonotonicInstant.now.advanced(by: .seconds(200 * 365 * 86_400))
        #expect(RunLoopTimer(fireDate: date) { _ in }.fireDate == date)
    }

    @Test("CF 31, D17: a repeating timer whose interval is nearly zero ends the process silently")
    func noInterval() async {
        await Pools.start()
        await #expect(processExitsWith: .failure) {
            let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 1e-10, 0, 0) { _ in }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
        }
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = RunLoopTimer(after: .zero, interval: .zero) { _ in }
        }
        expectSentence("A repeating timer needs an interval greater than zero.", in: result)
        // What CFRunLoop cannot fire is no trouble here.
        #expect(RunLoopTimer(after: .zero, interval: .nanoseconds(1)) { _ in }.isValid)
    }

    @Test("CF 32, D30: Foundation's timer that is made with an interval fires at once")
    func foundationTimer() async throws {
        let fired = Recorder<String>()
        try await onNewThread {
            let timer = Timer(timeInterval: 3600, repeats: false) { _ in fired.append("Foundation") }
            RunLoop.current.add(timer, forMode: .default)
            runCoreFoundation()
            timer.invalidate()
        }
        #expect(fired.takeAll() == ["Foundation"])
        try await onNewThread {
            let timer = RunLoopTimer(after: .seconds(3600)) { _ in fired.append("package") }
            ThreadRunLoop.current.add(timer)
            ThreadRunLoop.current.run(for: .zero)
            timer.invalidate()
        }
        #expect(fired.takeAll().isEmpty)
    }
}
