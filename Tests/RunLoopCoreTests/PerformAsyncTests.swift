// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct PerformAsyncTests {
    struct Refusal: Error, Equatable {}

    /// Suspends while a loop runs.
    private func withLoop(_ body: (ThreadRunLoop) async throws -> Void) async throws {
        let running = await offThePool { RunningLoop() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(running.loop))
        } catch {
            result = .failure(error)
        }
        running.loop.stop()
        try await running.thread.join()
        try result.get()
    }

    @Test("S11: a task suspends until the body has returned on the loop's thread, or has thrown")
    func result() async throws {
        try await withLoop { loop in
            let isOnLoop = try await loop.performAndWait { loop.isCurrent }
            #expect(isOnLoop)
            await #expect(throws: Refusal()) { try await loop.performAndWait(in: [.common]) { throw Refusal() } }
        }
    }

    @Test("S11: a cancelled task withdraws what has not started")
    func cancelled() async throws {
        try await withLoop { loop in
            let task = Task {
                try await loop.performAndWait(in: ["other"]) { _ = Issue.record("a cancelled body was called") }
            }
            await offThePool { loop.waitUntilPosted(to: ["other"]) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let result = try await loop.performAndWait { loop.run(mode: "other", until: Watchdog.deadline) }
            #expect(result == .finished)
        }
    }

    @Test("S11: a task that is cancelled already posts nothing")
    func cancelledBefore() async throws {
        try await withLoop { loop in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await loop.performAndWait(in: ["other"]) { _ = Issue.record("a cancelled body was called") }
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(!loop.allModes.contains("other"))
        }
    }

    @Test("S11: a cancelled task waits for a body that has started")
    func begun() async throws {
        try await withLoop { loop in
            let began = Gate("the body's beginning")
            let mayReturn = Gate("the body's end")
            let task = Task {
                try await loop.performAndWait {
                    began.open()
                    mayReturn.wait()
                    return 7
                }
            }
            await began.wait()
            task.cancel()
            mayReturn.open()
            let answer = try await task.value
            #expect(answer == 7)
        }
    }

    @Test("S11: a task learns that the thread has ended, before or meanwhile")
    func threadEnds() async throws {
        let (loop, task) = try await onLoop { loop in
            let task = Task { try await loop.performAndWait(in: ["other"]) { _ = Issue.record("called") } }
            loop.waitUntilPosted(to: ["other"])
            return (loop, task)
        }
        await #expect(throws: RunLoopError(.threadEnded)) { try await task.value }
        await #expect(throws: RunLoopError(.threadEnded)) {
            try await loop.performAndWait { Issue.record("an ended loop has called something") }
        }
    }

    @Test("cancelling races the call: the body is called once or never, and the task knows which")
    func race() async throws {
        try await withLoop { loop in
            var outcomes: Set<Bool> = []
            for _ in 0..<300 {
                let calls = Counter("calls")
                let task = Task { try await loop.performAndWait { calls.increment() } }
                await Task.yield()
                task.cancel()
                do {
                    #expect(try await task.value == 1)
                    outcomes.insert(true)
                } catch {
                    #expect(error is CancellationError)
                    // Whatever was posted before is called before this returns.
                    _ = try await loop.performAndWait {}
                    #expect(calls.value == 0)
                    outcomes.insert(false)
                }
            }
            #expect(!outcomes.isEmpty)
        }
    }

    @Test("a cancelled task leaves nothing behind, whenever the cancellation comes")
    func nothingLeft() async throws {
        try await withLoop { loop in
            for number in 0..<300 {
                let task = Task {
                    try await loop.performAndWait(in: ["other"]) { _ = Issue.record("a cancelled body was called") }
                }
                if number.isMultiple(of: 2) { await Task.yield() }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            let trace = Recorder<String>()
            loop.record(trace, in: "other")
            let result = try await loop.performAndWait { loop.run(mode: "other", until: Watchdog.deadline) }
            #expect(result == .finished)
            #expect(trace.elements.isEmpty)
        }
    }

    @Test("S11: on the loop's own thread a task calls the body at once, whatever the modes are")
    func ownThread() async throws {
        try await withLoop { loop in
            let pinned = Pinned(to: loop)
            try await pinned.check()
        }
    }
}

extension Pinned {
    fileprivate func check() async throws {
        #expect(loop.isCurrent)
        let isOnLoop = try await loop.performAndWait(in: ["never"]) { [loop] in loop.isCurrent }
        #expect(isOnLoop && !loop.allModes.contains("never"))
    }
}
