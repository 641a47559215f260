// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct LoopThreadTests {
    @Test("S1: a thread has one loop, the same each time, and another thread has another")
    func identity() async throws {
        let loops = Recorder<ThreadRunLoop>()
        for _ in 0..<2 {
            try await onLoop { loop in
                #expect(loop == .current)
                #expect(loop.isCurrent)
                #expect(loop != .main)
                #expect(!ThreadRunLoop.main.isCurrent)
                #expect(!loop.hasEnded && !loop.isWaiting)
                #expect(loop.currentMode == nil)
                #expect(loop.allModes == [.default])
                loops.append(loop)
            }
        }
        #expect(loops.elements[0] != loops.elements[1])
        #expect(loops.elements.map(\.hasEnded) == [true, true])
        #expect(!loops.elements[0].isCurrent)
    }

    @Test("S1: at the end of its thread a loop cancels its sources, drops the rest, and releases everything")
    func threadExit() async throws {
        let trace = Recorder<String>()
        let released = Counter("released objects")
        let loop = try await onLoop { loop in
            let probes = (0..<6).map { _ in LifeProbe(released) }
            for source in [
                RunLoopSource(cancel: { ended, mode in
                    trace.append("custom \(mode) \(ended.hasEnded) \(ended == .current)")
                }) { _ = probes[0] },
                RunLoopSource(readiness: { false }, cancel: { _, mode in trace.append("port \(mode)") }) {
                    _ = probes[1]
                },
            ] {
                loop.add(source)
                loop.add(source, to: "other")
            }
            loop.add(RunLoopTimer(fireDate: .distantFuture) { _ in _ = probes[2] })
            loop.add(RunLoopTimer(fireDate: .distantFuture) { _ in _ = probes[3] }, to: .common)
            loop.add(RunLoopObserver(activities: .all) { _, _ in _ = probes[4] })
            loop.perform {
                _ = probes[5]
                Issue.record("the block ran")
            }
            return loop
        }
        #expect(
            trace.elements == ["custom default true true", "port default", "custom other true true", "port other"])
        #expect(released.value == 6)
        #expect(loop.hasEnded)
    }

    @Test("a loop whose thread is gone accepts nothing")
    func afterTheEnd() async throws {
        let released = Counter("released objects")
        let loop = try await onLoop { $0 }
        let mailbox = Mailbox { _ in }
        loop.add(mailbox.source)
        loop.add(idleSource(), to: .common)
        loop.add(RunLoopTimer(fireDate: .now) { _ in })
        loop.add(RunLoopObserver(activities: .all) { _, _ in }, to: "new")
        do {
            let probe = LifeProbe(released)
            loop.perform { _ = probe }
        }
        #expect(released.value == 1)
        #expect(!loop.contains(mailbox.source))
        #expect(loop.allModes == [.default])
        loop.addCommonMode("other")
        loop.stop()
        loop.wakeUp()
        mailbox.put(1)
        mailbox.source.invalidate()
    }

    @Test("removal and invalidation release the source: no cycle keeps it alive")
    func noCycle() async throws {
        let released = Counter("released objects")
        try await onLoop { loop in
            for number in 0..<3 {
                let probe = LifeProbe(released)
                let source = RunLoopSource(readiness: { false }) { _ = probe }
                loop.add(source, to: .common)
                loop.add(source, to: "other")
                if number == 0 { source.invalidate() }
                if number == 1 {
                    loop.remove(source, from: .common)
                    loop.remove(source, from: "other")
                }
            }
            #expect(released.value == 2)
        }
        #expect(released.value == 3)
    }

    @Test("a loop holds no descriptor, though it slept, until one is watched: then it holds a doorbell and a set")
    func descriptors() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let before = openDescriptors()
            loop.add(RunLoopSource(readiness: { true }) {})
            loop.add(RunLoopTimer(fireDate: .distantPast) { _ in })
            for _ in 0..<10 { loop.run(for: .zero) }
            #expect(openDescriptors() == before)
            loop.add(idleSource(), to: "other")
            // A run whose time is over before it could sleep is repeated.
            let deadline = Watchdog.deadline
            while loop.waitCounts.sleeps == 0, .now < deadline { loop.run(mode: "other", for: .milliseconds(1)) }
            #expect(loop.waitCounts.sleeps > 0 && openDescriptors() == before)
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) {}
            loop.add(source, to: "other")
            let kinds = openDescriptors().subtracting(before).compactMap { $0.split(separator: ":").last }.sorted()
            #expect(kinds == ["[eventfd]", "[eventpoll]"])
            source.invalidate()
        }
    }

    #if PORT_FAULTS
    @Test("what comes when a sleep was announced, and has not started, ends it", arguments: [false, true])
    func lateRing(addsDescriptor: Bool) async throws {
        try await onLoop { loop in
            loop.waitStrategy = .blocking
            loop.add(idleSource())
            let pipe = try TestPipe(isBlocking: false)
            _ = try sysWrite(pipe.writing.rawValue, [1])
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() }
            let late = SystemCallFaults.Rule(
                .futex, .precede { if addsDescriptor { loop.add(source) } else { loop.stop() } })
            let (result, hits) = SystemCallFaults.with([late]) { loop.run(until: Watchdog.deadline) }
            #expect(result == .stopped && hits == 1)
            source.invalidate()
        }
    }

    @Test("a sleep that signals interrupt goes on")
    func interruptedSleep() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .blocking
            // A timer that comes before the fifth signal, as on a busy machine, ends the sleep too. Then it is repeated
            // with a longer delay.
            var hits = 0
            var delay = Duration.milliseconds(2)
            while hits < 5, delay < .seconds(60) {
                let fired = LoopBound(0)
                loop.add(RunLoopTimer(after: delay) { _ in fired.value += 1 })
                (_, hits) = SystemCallFaults.with([.init(.futex, .fail(EINTR), times: 5)]) {
                    loop.run(for: .seconds(60))
                }
                #expect(fired.value == 1)
                delay *= 4
            }
            #expect(hits == 5)
        }
    }
    #endif

    @Test("a loop whose thread has ended holds no descriptor, though it is held itself")
    func noDescriptorAfterTheEnd() async throws {
        try await onNewThread {
            let pipe = try TestPipe(isBlocking: false)
            let before = openDescriptors()
            let loop = try onNewThread {
                ThreadRunLoop.current.add(RunLoopSource(descriptor: pipe.reading.rawValue) {})
                ThreadRunLoop.current.run(for: .milliseconds(1))
                return ThreadRunLoop.current
            }
            #expect(openDescriptors() == before)
            #expect(loop.hasEnded)
            loop.wakeUp()
            loop.stop()
        }
    }

    @Test("isWaiting is true while the loop sleeps, and false in a handler")
    func waiting() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            let thread = runOnThread {
                while !loop.isWaiting { sched_yield() }
                loop.perform {
                    #expect(!loop.isWaiting)
                    loop.stop()
                }
            }
            #expect(loop.runGuarded() == .stopped)
            try thread.join()
        }
    }
}
