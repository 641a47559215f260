// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

private actor Pinned {
    private nonisolated let loop: ThreadRunLoop

    init(to loop: ThreadRunLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private var touches = 0

    /// Changes something, and is called as it is: optimized code would not go to the loop for nothing.
    @inline(never) func touch() { touches += 1 }
}

@Suite("Traps of executors and resident threads", .leakCheck) struct ExecutorTrapTests {
    @Test("calling an actor whose loop's thread has ended traps, and says what to do")
    func actorAfterEnd() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = try ResidentThread(name: "resident")
            let pinned = Pinned(to: thread.loop)
            await pinned.touch()
            thread.stop()
            await thread.join()
            await pinned.touch()
        }
        expectSentence("has work for a run loop whose thread has ended. Keep the thread (a ResidentThread", in: result)
    }

    @Test("starting a task that prefers the loop of a thread that has ended traps, and says what to do")
    func taskAfterEnd() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let loop = try await onNewThread { ThreadRunLoop.current }
            await Task(executorPreference: loop) {}.value
        }
        expectSentence("has work for a run loop whose thread has ended. Keep the thread (a ResidentThread", in: result)
    }

    @Test("assuming on another thread to be in an actor of a loop traps")
    func assumeElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = try ResidentThread(name: "resident")
            let pinned = Pinned(to: thread.loop)
            try onNewThread { pinned.assumeIsolated { $0.touch() } }
        }
        expectSentence("Incorrect actor executor assumption", in: result)
        let direct = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try ResidentThread(name: "resident").loop.checkIsolated()
        }
        expectSentence("Using an actor of a loop is allowed on the thread of its run loop only.", in: direct)
    }

    @Test("a resident thread that joins itself traps")
    func joinItself() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = try ResidentThread(name: "resident")
            try thread.perform { thread.join() }
            await thread.join()
        }
        expectSentence("A resident thread cannot wait for its own end. Call `stop` there", in: result)
        let inTask = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = try ResidentThread(name: "resident")
            _ = await Task(executorPreference: thread.loop) { await thread.join() }.value
        }
        expectSentence("A resident thread cannot wait for its own end. Call `stop` there", in: inTask)
    }
}
