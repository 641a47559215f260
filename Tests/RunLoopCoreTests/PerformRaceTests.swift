// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite(.leakCheck) struct PerformRaceTests {
    @Test("cancelling races the call: a request is cancelled or called, never both", arguments: RequestKind.allCases)
    func cancelOne(_ kind: RequestKind) async throws {
        try await besideLoop { loop in
            let threads = (0..<8).map { _ in
                runOnThread {
                    for _ in 0..<100 {
                        let calls = Counter("calls")
                        let request = kind.perform(on: loop) { calls.increment() }
                        if request.cancel() {
                            #expect(calls.value == 0)
                        } else {
                            calls.waitUntilCount(1)
                        }
                        // What was posted or due before has been called when this returns.
                        try loop.performAndWait(within: Watchdog.longTimeout) {}
                        #expect(calls.value == (request.cancel() ? 0 : 1))
                    }
                }
            }
            for thread in threads { try thread.join() }
        }
    }

    @Test("eight threads cancel all requests of a target while they are called: each is counted once")
    func cancelAll() async throws {
        try await besideLoop { loop in
            let target = LifeProbe(Counter("targets"))
            let (calls, cancelled) = (Counter("calls"), Counter("cancelled requests"))
            let threads = (0..<8).map { thread in
                runOnThread {
                    for number in 0..<100 {
                        let kind = RequestKind.allCases[number % 2]
                        kind.perform(on: loop, for: target) { calls.increment() }
                        if number % 7 == thread % 7 {
                            cancelled.increment(by: loop.cancelPerformRequests(for: target))
                        }
                    }
                }
            }
            for thread in threads { try thread.join() }
            cancelled.increment(by: loop.cancelPerformRequests(for: target))
            try loop.performAndWait(within: Watchdog.longTimeout) {}
            #expect(calls.value + cancelled.value == 800)
        }
    }

    @Test("a limit races the call: a body is called at most once, and always when its caller got a result")
    func limits() async throws {
        try await besideLoop { loop in
            let threads = (0..<8).map { thread in
                runOnThread {
                    for number in 0..<50 {
                        let calls = Counter("calls")
                        let limit = Duration.microseconds(thread * number)
                        do {
                            let count = try loop.performAndWait(within: limit) { calls.increment() }
                            #expect(count == 1)
                        } catch {
                            #expect(error as? RunLoopError == RunLoopError(.timedOut))
                        }
                        try loop.performAndWait(within: Watchdog.longTimeout) {}
                        #expect(calls.value <= 1)
                    }
                }
            }
            for thread in threads { try thread.join() }
        }
    }

    @Test("the thread's end races requests: each is called or over, and no caller hangs")
    func threadEnds() async throws {
        for _ in 0..<20 {
            try await onNewThread {
                let running = RunningLoop()
                let outcomes = Recorder<Bool>()
                let threads = (0..<8).map { thread in
                    runOnThread {
                        for number in 0... {
                            if thread == 0, number == 5 { running.loop.stop() }
                            let calls = Counter("calls")
                            let request = RequestKind.allCases[number % 2].perform(on: running.loop) {
                                calls.increment()
                            }
                            do {
                                try running.loop.performAndWait(within: Watchdog.longTimeout) {}
                            } catch {
                                #expect(error as? RunLoopError == RunLoopError(.threadEnded))
                                #expect(calls.value == (request.cancel() ? 0 : 1))
                                return outcomes.append(true)
                            }
                        }
                    }
                }
                for thread in threads { try thread.join() }
                try running.thread.join()
                #expect(outcomes.count == 8)
            }
        }
    }
}
