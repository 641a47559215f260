// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// What Docs/Decisions/0006-loops-as-executors.md decides about nested runs and about the end of the thread.
@Suite(.leakCheck(threadNames: ["resident"], settles: true)) struct ExecutorNestingTests {
    @Test("a run that is nested in an actor's job runs blocks and sources, but no other job")
    func nestedInJob() async throws {
        let thread = try ResidentThread(name: "resident")
        let (loop, trace) = (thread.loop, Recorder<String>("the trace"))
        let (pinned, other) = (Pinned(to: loop), Pinned(to: loop))
        let (begun, mayNest) = (Gate("the job"), Gate("the test"))
        let job = Task {
            await pinned.exclusively {
                begun.open()
                mayNest.wait()
                loop.perform { trace.append("block") }
                trace.append("\(loop.run(for: .zero))")
                trace.append("\(loop.run(for: .zero))")
            }
            trace.append("after")
        }
        await begun.wait()
        let jobs = [
            Task(executorPreference: loop) { trace.append("task") },
            Task { await other.exclusively { trace.append("actor") } },
            Task { await pinned.exclusively { trace.append("same actor") } },
        ]
        while loop.waitingJobCount < 3 { await Task.yield() }
        mayNest.open()
        for job in jobs + [job] { await job.value }
        #expect(trace.elements.prefix(3) == ["block", "timedOut", "timedOut"])
        #expect(Set(trace.elements.dropFirst(3)) == ["task", "actor", "same actor", "after"])
        thread.stop()
        await thread.join()
    }

    @Test("waiting jobs keep no nested run going that would not run them")
    func nestedInEmptyMode() async throws {
        try await onLoop { loop in
            let trace = Recorder<String>()
            Task(executorPreference: loop) {
                Task(executorPreference: loop) { trace.append("job") }
                trace.append("\(nestedRun(loop))")
            }
            #expect(loop.runGuarded() == .finished)
            #expect(trace.elements == ["finished", "job"])
        }
    }

    @Test("a job that comes during a nested run that may not run it is run after that")
    func duringSleep() async throws {
        let thread = try ResidentThread(name: "resident")
        let (loop, trace) = (thread.loop, Recorder<String>("the trace"))
        let job = Task(executorPreference: loop) {
            let source = idleSource()
            loop.add(source, to: "nested")
            loop.addCommonMode("nested")
            trace.append("\(nestedRun(loop, mode: "nested"))")
            source.invalidate()
        }
        while loop.currentMode != "nested" || !loop.isWaiting { await Task.yield() }
        let waiting = Task(executorPreference: loop) { trace.append("job") }
        loop.perform(in: [.common]) { trace.append("block") }
        await trace.waitUntilCount(1)
        loop.stop()
        await waiting.value
        await job.value
        #expect(trace.elements == ["block", "stopped", "job"])
        thread.stop()
        await thread.join()
    }

    @Test("a run that is nested in a handler runs jobs")
    func nestedInHandler() async throws {
        try await onLoop { loop in
            let trace = Recorder<String>()
            loop.perform {
                Task(executorPreference: loop) { trace.append("job") }
                #expect(loop.run(for: .zero) == .timedOut)
                trace.append("block")
            }
            #expect(loop.runGuarded() == .finished)
            #expect(trace.elements == ["job", "block"])
        }
    }

    @Test("the jobs that wait when a thread ends, and those that they make, are run on it before its loop ends")
    func drained() async throws {
        let trace = Recorder<String>()
        let tasks = Recorder<Task<Void, Never>>()
        try await onLoop { loop in
            loop.add(RunLoopSource(cancel: { _, _ in trace.append("cancel") }) {})
            loop.perform { trace.append("a block, never called") }
            for number in 0..<3 {
                tasks.append(
                    Task(executorPreference: loop) {
                        for step in 0..<2 {
                            trace.append("\(number).\(step) \(loop.isCurrent) \(loop.hasEnded)")
                            await Task.yield()
                        }
                    })
            }
        }
        for task in tasks.elements { await task.value }
        #expect(
            trace.elements == [
                "0.0 true false", "1.0 true false", "2.0 true false", "0.1 true false", "1.1 true false",
                "2.1 true false", "cancel",
            ])
    }

    @Test("calls of actors that wait when a resident thread stops are answered")
    func drainedActors() async throws {
        let thread = try ResidentThread(name: "resident")
        let (pinned, begun, mayGo) = (Pinned(to: thread.loop), Gate("the task"), Gate("the test"))
        try thread.perform {
            begun.open()
            mayGo.wait()
        }
        await begun.wait()
        let calls = (0..<10).map { number in Task { await pinned.append(number) } }
        while thread.loop.waitingJobCount < 10 { await Task.yield() }
        thread.stop()
        mayGo.open()
        for call in calls { #expect(await call.value) }
        #expect(await offThePool { thread.join() })
    }

    @Test("an actor that owns its thread ends the thread with itself")
    func owningActor() async throws {
        let ended = Gate("the end of the loop")
        do {
            let owner = try Owner()
            owner.thread.loop.add(RunLoopSource(cancel: { _, _ in ended.open() }) {})
            #expect(await owner.isOnThread)
        }
        await ended.wait()
        try ResidentThread.waitUntilGone()
    }
}

/// Runs a loop in a job's synchronous part.
private func nestedRun(_ loop: ThreadRunLoop, mode: RunLoopMode = .default) -> RunLoopRunResult {
    loop.runGuarded(mode: mode)
}

/// An actor with a thread of its own.
private actor Owner {
    nonisolated let thread: ResidentThread

    init() throws {
        thread = try ResidentThread(name: "resident")
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.loop.asUnownedSerialExecutor() }

    var isOnThread: Bool { thread.isCurrent }
}
