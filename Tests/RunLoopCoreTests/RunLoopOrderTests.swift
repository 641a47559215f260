// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct RunLoopOrderTests {
    private static let waiting = ["entry", "beforeTimers", "beforeSources", "beforeWaiting", "afterWaiting"]

    @Test("S10: a pass that fires a timer", arguments: [false, true])
    func timerPass(watchesDescriptor: Bool) async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) { Issue.record("performed") }
            if watchesDescriptor { loop.add(source) }
            loop.record(trace)
            let timer = RunLoopTimer(after: .milliseconds(5)) { _ in
                trace.append("timer")
                source.invalidate()
            }
            loop.add(timer)
            #expect(loop.runGuarded() == .finished)
        }
        #expect(trace.elements == Self.waiting + ["timer", "exit"])
    }

    @Test("S10: a pass that performs a custom source polls")
    func customSourcePass() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            let source = RunLoopSource { trace.append("source0") }
            loop.add(source)
            source.signal()
            loop.perform { trace.append("block") }
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
        }
        #expect(trace.elements == ["entry", "beforeTimers", "beforeSources", "block", "source0", "exit"])
    }

    @Test("S10: a pass that performs a port-based source")
    func portSourcePass() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            let mailbox = Mailbox { _ in trace.append("source1") }
            loop.add(mailbox.source)
            mailbox.put(1)
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
        }
        #expect(trace.elements == Self.waiting + ["source1", "exit"])
    }

    @Test("S10: a pass that performs a descriptor's source, for each kind of sleep", arguments: Sleep.onDescriptors)
    func descriptorPass(sleep: Sleep) async throws {
        let trace = Recorder<String>()
        try await onLoop(sleepingOn: sleep, isNotified: false) { loop in
            loop.record(trace)
            let pipe = try TestPipe(isBlocking: false)
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { trace.append("source1") })
            try pipe.put()
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
        }
        #expect(trace.elements == Self.waiting + ["source1", "exit"])
    }

    @Test("S10: a limit of zero never waits: no observer of waiting is called")
    func zeroLimit() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            loop.add(idleSource())
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(loop.run(for: .seconds(-1)) == .timedOut)
            #expect(loop.kernelWaitCount == 0)
        }
        let pass = ["entry", "beforeTimers", "beforeSources", "exit"]
        #expect(trace.elements == pass + pass)
    }

    @Test("a limit above zero is no poll, however short it is")
    func shortLimit() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            loop.add(idleSource())
            #expect(loop.run(for: .nanoseconds(1)) == .timedOut)
        }
        #expect(trace.elements == Self.waiting + ["exit"])
    }

    @Test("S2, S10: a wake-up goes back to step 2 and ends no run", arguments: Sleep.allCases)
    func wakeUp(from sleep: Sleep) async throws {
        let trace = Recorder<String>()
        try await onLoop(sleepingOn: sleep) { loop in
            loop.add(idleSource())
            let sleeps = SleepObserver(loop)
            loop.record(trace)
            let waker = runOnThread {
                sleeps.wait(for: 1)
                loop.wakeUp()
                sleeps.wait(for: 2)
                loop.stop()
            }
            #expect(loop.runGuarded() == .stopped)
            try waker.join()
        }
        let pass = ["beforeTimers", "beforeSources", "beforeWaiting", "afterWaiting"]
        #expect(trace.elements == ["entry"] + pass + pass + ["exit"])
    }

    @Test("one event per pass: two ready port-based sources take two passes")
    func oneEventPerPass() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let first = Mailbox { _ in trace.append("first") }
            let second = Mailbox { _ in
                trace.append("second")
                loop.stop()
            }
            for mailbox in [first, second] {
                loop.add(mailbox.source)
                mailbox.put(1)
            }
            loop.add(RunLoopObserver(activities: .beforeTimers) { _, _ in trace.append("pass") })
            #expect(loop.runGuarded() == .stopped)
        }
        #expect(trace.elements == ["pass", "first", "pass", "second"])
    }

    @Test("a source that is always ready does not starve timers, and timers that are always due do not starve sources")
    func fairness() async throws {
        try await onLoop { loop in
            let fired = Counter("firings")
            let performed = Counter("performs")
            let source = RunLoopSource(readiness: { true }) { performed.increment() }
            loop.add(source)
            loop.add(
                RunLoopTimer(fireDate: .distantPast, interval: .nanoseconds(1)) { _ in
                    if fired.increment() == 1000 { loop.stop() }
                })
            #expect(loop.runGuarded() == .stopped)
            #expect(performed.value >= 999)
        }
    }

    @Test("a descriptor's source is served beside a source that is always ready")
    func descriptorFairness() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            loop.add(RunLoopSource(readiness: { true }) {})
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() })
            try pipe.put()
            #expect(loop.runGuarded() == .stopped)
        }
    }

    @Test("S25: an idle loop makes no pass and no wake-up", arguments: [WaitStrategy.blocking, .adaptive])
    func idle(strategy: WaitStrategy) async throws {
        try await onLoop { loop in
            loop.waitStrategy = strategy
            let pipe = try TestPipe(isBlocking: false)
            loop.add(idleSource())
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) {})
            for _ in 0..<100 { loop.add(RunLoopSource(readiness: { false }) {}) }
            #expect(loop.run(for: .milliseconds(300)) == .timedOut)
            #expect(loop.passCount == 1)
            #expect(loop.kernelWaitCount == 1)
        }
    }
}
