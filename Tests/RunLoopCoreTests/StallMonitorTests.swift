// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

/// What monitors reported, and how often.
private final class Reports: Sendable {
    private let list = Recorder<RunLoopStall>("reports")
    private let begun = Counter("first reports")
    private let over = Counter("last reports")

    func append(_ stall: RunLoopStall) {
        list.append(stall)
        (stall.isOver ? over : begun).increment()
    }

    var first: [RunLoopStall] { list.elements.filter { !$0.isOver } }
    var last: [RunLoopStall] { list.elements.filter(\.isOver) }

    /// Runs the loop with a handler that returns when a stall is reported, until a first report is as it should be.
    /// (The machine may be so slow that a stall is reported before the handler begins.)
    func stall(
        _ loop: ThreadRunLoop, _ isExpected: (RunLoopStall) -> Bool, _ handler: @escaping @Sendable (Int) -> Void
    ) {
        let deadline = Watchdog.deadline
        while !first.contains(where: isExpected), .now < deadline {
            let count = begun.value + 1
            loop.perform(name: "slow") { handler(count) }
            loop.run(for: .zero)
            over.waitUntilCount(begun.value)
        }
    }

    func waitForFirst(_ count: Int) {
        begun.waitUntilCount(count)
    }

    /// Whether `count` stalls were reported.
    func hasFirst(_ count: Int) -> Bool { begun.value >= count }
}

@Suite(.leakCheck(threadNames: ["stall-monitor"])) struct StallMonitorTests {
    @Test("S22: a handler that keeps the loop busy is reported while it is under way, and when it is over")
    func slow() async throws {
        let reports = Reports()
        try await onLoop { loop in
            let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(20)) { reports.append($0) }
            defer { monitor.invalidate() }
            #expect(monitor.isValid && monitor.threshold == .milliseconds(20))
            reports.stall(loop, { $0.callout?.name == "slow" }, { reports.waitForFirst($0) })
            let first = try #require(reports.first.last)
            #expect(first.callout?.kind == .block && first.mode == .default && first.threadID == sysThreadID())
            #expect(first.duration >= .milliseconds(20) && first.duration >= first.calloutDuration)
            let last = try #require(reports.last.last)
            #expect(last.since == first.since && last.duration >= first.duration && last.callout?.name == "slow")
        }
    }

    @Test("many quick handlers that leave the loop no rest are reported")
    func many() async throws {
        let reports = Reports()
        try await onLoop { loop in
            let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(20)) { reports.append($0) }
            defer { monitor.invalidate() }
            let source = RunLoopSource(name: "quick") {}
            loop.add(source)
            let deadline = Watchdog.deadline
            // A slow machine may get to few handlers before the report; then the next run is reported.
            while !reports.first.contains(where: { $0.calloutCount > 10 }), .now < deadline {
                let count = reports.first.count + 1
                let again = RunLoopObserver(name: "again", activities: .beforeTimers) { _, _ in
                    source.signal()
                    if reports.hasFirst(count) || .now > deadline { loop.stop() }
                }
                loop.add(again)
                loop.run(for: .seconds(3_600))
                again.invalidate()
            }
            #expect(reports.first.contains { $0.calloutCount > 10 })
            #expect(reports.first.allSatisfy { $0.duration >= .milliseconds(20) })
        }
    }

    @Test("a loop that sleeps wakes no monitor, one that works wakes it once per threshold")
    func idle() async throws {
        try await onLoop { loop in
            let patient = try RunLoopStallMonitor(of: loop, threshold: .seconds(3_600)) { _ in }
            let quick = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(2)) { _ in }
            loop.add(idleSource())
            let performed = Counter("blocks")
            let other = runOnThread {
                for number in 1...100 {
                    loop.perform { performed.increment() }
                    performed.waitUntilCount(number)
                }
                #expect(patient.record.checkCount <= 1, "100 sleeps, at most one check: the threshold is an hour")
                while !quick.record.isIdle || !loop.isWaiting { yieldThread() }
                let count = quick.record.checkCount
                ThreadEvent().wait(until: .after(.milliseconds(200)))
                #expect(quick.record.checkCount == count)
                loop.stop()
            }
            loop.runGuarded()
            try other.join()
            patient.invalidate()
            quick.invalidate()
        }
    }

    @Test("a loop is idle when it sleeps, also in a nested run, and not when it only polls")
    func idleness() async throws {
        try await onLoop { loop in
            let idle = Counter("idle")
            let instrument = IdleHook {
                idle.increment()
                loop.perform(in: ["inner"]) { loop.stop() }
            }
            loop.add(instrument)
            loop.add(idleSource())
            loop.run(for: .zero)
            loop.perform(in: ["empty"]) {}
            loop.run(mode: "empty", for: Watchdog.longTimeout)
            #expect(idle.value == 0)
            loop.perform {
                loop.add(idleSource(), to: "inner")
                loop.runGuarded(mode: "inner")
            }
            loop.run(for: .zero)
            #expect(idle.value >= 1)
            loop.remove(instrument)
        }
    }

    @Test("several monitors observe one loop, and each reports by itself")
    func several() async throws {
        let (quick, slow, never) = (Reports(), Reports(), Reports())
        try await onLoop { loop in
            let monitors = [
                try RunLoopStallMonitor(of: loop, threshold: .milliseconds(5)) { quick.append($0) },
                try RunLoopStallMonitor(of: loop, threshold: .milliseconds(30)) { slow.append($0) },
                try RunLoopStallMonitor(of: loop, threshold: .seconds(3_600)) { never.append($0) },
            ]
            slow.stall(loop, { $0.callout?.name == "slow" }) {
                slow.waitForFirst($0)
                quick.waitForFirst(1)
            }
            for monitor in monitors { monitor.invalidate() }
            #expect(monitors.allSatisfy { !$0.isValid } && !loop.hasInstruments)
        }
        #expect(!quick.first.isEmpty && never.first.isEmpty)
    }

    @Test("reports come on the loop that was asked for")
    func reporting() async throws {
        let seen = Recorder<RunLoopStall>("reports")
        try await onLoop { reportLoop in
            let gate = Gate("a report")
            let monitored = Gate("the monitored loop")
            let thread = runOnThread {
                let loop = ThreadRunLoop.current
                let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(1), reportingOn: reportLoop) {
                    #expect(reportLoop.isCurrent)
                    seen.append($0)
                    gate.open()
                    if $0.isOver { reportLoop.stop() }
                }
                loop.perform { gate.wait() }
                loop.run(for: .zero)
                monitored.wait()
                monitor.invalidate()
                // Its thread may still be waking the loop that it reported to.
                Watchdog.wait(for: monitor.record.finished, "the monitor's thread goes on")
            }
            reportLoop.add(idleSource())
            reportLoop.runGuarded()
            monitored.open()
            try thread.join()
        }
        #expect(seen.elements.prefix(2).map(\.isOver) == [false, true])
    }

    @Test("a monitor survives the end of the monitored thread, and says that the stall is over")
    func threadEnd() async throws {
        let reports = Reports()
        let retained = Mutex<RunLoopStallMonitor?>(nil)
        try await onLoop { loop in
            let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(1)) { reports.append($0) }
            loop.perform { reports.waitForFirst(1) }
            loop.run(for: .zero)
            retained.withLock { $0 = monitor }
        }
        let monitor = try #require(retained.withLock { $0.take() })
        #expect(monitor.isValid)
        while !monitor.record.isIdle { yieldThread() }
        #expect(reports.first.count == reports.last.count)
        monitor.invalidate()
        monitor.invalidate()
        #expect(!monitor.isValid)
    }

    #if PORT_FAULTS
    @Test("a monitor that gets no thread throws, and monitors nothing")
    func noThread() async throws {
        try await onLoop { loop in
            let (error, _) = SystemCallFaults.with([.init(.clone, .fail(EAGAIN), times: 1)]) { () -> SystemError? in
                do throws(SystemError) {
                    _ = try RunLoopStallMonitor(of: loop) { _ in }
                    return nil
                } catch {
                    return error
                }
            }
            #expect(error == SystemError(EAGAIN) && !loop.hasInstruments)
        }
    }
    #endif

    @Test("a monitor ends when it is released, and when its handler ends it")
    func release() async throws {
        try await onLoop { loop in
            var finished: ThreadEvent?
            do {
                let monitor = try RunLoopStallMonitor(of: loop) { _ in }
                #expect(loop.hasInstruments && monitor.threshold == RunLoopStallMonitor.defaultThreshold)
                finished = monitor.record.finished
            }
            #expect(!loop.hasInstruments)
            Watchdog.wait(for: try #require(finished), "the monitor's thread goes on")
            let gate = Gate("a report")
            let box = Mutex<RunLoopStallMonitor?>(nil)
            let made = Gate("the monitor")
            let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(1)) { _ in
                made.wait()
                box.withLock { $0.take() }?.invalidate()
                gate.open()
            }
            box.withLock { $0 = monitor }
            made.open()
            loop.perform { gate.wait() }
            loop.run(for: .zero)
            #expect(!monitor.isValid && !loop.hasInstruments)
        }
    }
}
