// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct TimerAccuracyTests {
    @Test("S24: a loop's timer is late while the loop is busy, and a dispatch timer is not delayed by that")
    func busy() async throws {
        let dispatched = Counter("firings of the dispatch timer")
        // Not Sendable: it is set up here, activated once on the loop's thread, and cancelled here after that.
        nonisolated(unsafe) let dispatchTimer = DispatchSource.makeTimerSource(queue: .global())
        let cancelled = Gate("the end of the dispatch timer")
        dispatchTimer.setEventHandler { dispatched.increment() }
        dispatchTimer.setCancelHandler { cancelled.open() }
        dispatchTimer.schedule(deadline: .now(), repeating: .milliseconds(1), leeway: .nanoseconds(0))

        let dates = Recorder<(due: MonotonicInstant, fired: MonotonicInstant)>("firings of the loop's timer")
        try await onLoop { loop in
            let timer = RunLoopTimer(after: .zero, interval: .milliseconds(1)) { timer in
                dates.append((timer.fireDate, .now))
                if dates.count == 2 { timer.invalidate() }
            }
            loop.add(timer)
            let first = timer.fireDate
            let free = LoopBound<MonotonicInstant?>(nil)
            // A slow handler: it lasts until the other timer has fired ten times.
            loop.perform {
                dispatchTimer.activate()
                dispatched.waitUntilCount(10)
                free.value = .now
                #expect(dates.count == 0)
            }
            #expect(loop.runGuarded() == .finished)

            let end = try #require(free.value)
            let (late, next) = (dates.elements[0], dates.elements[1])
            // Late, and once for all the firings that it has missed; then in phase again.
            #expect(late.due == first && first < end && end <= late.fired)
            #expect(next.due > late.fired && next.due <= next.fired)
            #expect(first.duration(to: next.due).nanoseconds % 1_000_000 == 0)
        }
        dispatchTimer.cancel()
        await cancelled.wait()
        #expect(dispatched.value >= 10)
    }

    @Test("S24: a timer fires at its date or later, never before, also when its loop is idle")
    func neverEarly() async throws {
        try await onLoop { loop in
            for microseconds in [0, 1, 50, 999, 1500] {
                let calls = Counter("calls")
                loop.add(
                    RunLoopTimer(after: .microseconds(microseconds)) { timer in
                        #expect(timer.fireDate <= .now)
                        calls.increment()
                    })
                #expect(loop.runGuarded() == .finished)
                #expect(calls.value == 1)
            }
        }
    }
}
