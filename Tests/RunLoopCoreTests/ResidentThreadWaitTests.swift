// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck(threadNames: ["resident"], settles: true)) struct ResidentThreadWaitTests {
    @Test("a wait gives what the task returned, or throws what it threw, after all that was posted before")
    func waits() throws {
        let (thread, seen) = (try ResidentThread(name: "resident"), Recorder<Int>())
        for number in 0..<100 { try thread.perform { seen.append(number) } }
        let (isCurrent, count) = try thread.performAndWait(within: Watchdog.longTimeout) {
            (thread.isCurrent, seen.count)
        }
        #expect(isCurrent && count == 100)
        #expect(throws: SystemError(EPERM)) {
            try thread.performAndWait(within: Watchdog.longTimeout) { throw SystemError(EPERM) }
        }
        thread.stop()
        thread.join()
    }

    @Test("on the thread itself it is called at once, also after a stop")
    func inline() throws {
        let (thread, trace) = (try ResidentThread(name: "resident"), Recorder<String>())
        try thread.performAndWait(within: Watchdog.longTimeout) {
            try thread.perform { trace.append("posted") }
            try thread.performAndWait(within: .zero) { trace.append("inline") }
            thread.stop()
            try thread.performAndWait(within: .zero) { trace.append("after the stop") }
        }
        #expect(thread.join())
        #expect(trace.elements == ["inline", "after the stop", "posted"])
    }

    @Test("a task that does not begin within the limit is never called")
    func limit() throws {
        let (thread, called) = (try ResidentThread(name: "resident"), Counter("calls"))
        let (begun, mayGo) = (Gate("the task"), Gate("the test"))
        try thread.perform {
            begun.open()
            mayGo.wait()
        }
        begun.wait()
        #expect(throws: RunLoopError(.timedOut)) {
            try thread.performAndWait(within: .milliseconds(2)) { _ = called.increment() }
        }
        mayGo.open()
        thread.stop()
        thread.join()
        #expect(called.value == 0)
    }

    @Test("after a stop a wait is refused at once, blocking or not, before the end and after it")
    func refused() async throws {
        let (thread, called) = (try ResidentThread(name: "resident"), Counter("calls"))
        let (begun, mayGo) = (Gate("the task"), Gate("the test"))
        try thread.perform {
            begun.open()
            mayGo.wait()
        }
        await begun.wait()
        thread.stop()
        for _ in 0..<2 {
            await #expect(throws: RunLoopError(.threadEnded)) {
                try await offThePool {
                    try thread.performAndWait(within: Watchdog.longTimeout) { _ = called.increment() }
                }
            }
            await #expect(throws: RunLoopError(.threadEnded)) {
                try await thread.performAndWait { _ = called.increment() }
            }
            mayGo.open()
            await offThePool { _ = thread.join() }
        }
        #expect(called.value == 0)
    }

    @Test("a task is suspended until the thread has called, and may be cancelled before")
    func async() async throws {
        let thread = try ResidentThread(name: "resident")
        #expect(try await thread.performAndWait { thread.isCurrent })
        let (begun, mayGo) = (Gate("the task"), Gate("the test"))
        try thread.perform {
            begun.open()
            mayGo.wait()
        }
        await begun.wait()
        let waiting = Task { try await thread.performAndWait { Issue.record("it was called") } }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        mayGo.open()
        thread.stop()
        await offThePool { _ = thread.join() }
    }

    @Test("each caller that waits while the thread is stopped is answered, one way or the other")
    func stopRace() async throws {
        for _ in 0..<50 {
            let (thread, called, answered) = (
                try ResidentThread(name: "resident"), Counter("calls"), Counter("answers")
            )
            let waiters = (0..<3).map { _ in
                runOnThread { () -> Int in
                    for count in 0..<1000 {
                        do {
                            try thread.performAndWait(within: Watchdog.longTimeout) { _ = called.increment() }
                        } catch {
                            #expect(error as? RunLoopError == RunLoopError(.threadEnded))
                            return count
                        }
                        answered.increment()
                    }
                    return 1000
                }
            }
            await answered.waitUntilCount(3)
            thread.stop()
            var count = 0
            for waiter in waiters { count += try await waiter.join() }
            #expect(await thread.join())
            #expect(called.value == count)
        }
    }
}
