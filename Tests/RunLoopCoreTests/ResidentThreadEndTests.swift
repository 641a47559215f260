// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite(.leakCheck(threadNames: ["resident"], settles: true)) struct ResidentThreadEndTests {
    /// Keeps a resident thread busy until the gate opens.
    private func occupy(_ thread: ResidentThread) throws -> Gate {
        let (begun, mayGo) = (Gate("the first task"), Gate("the test"))
        try thread.perform {
            begun.open()
            mayGo.wait()
        }
        begun.wait()
        return mayGo
    }

    @Test("S20: tasks that were posted before the stop are executed, later ones are refused")
    func stopInOrder() throws {
        let (thread, seen) = (try ResidentThread(name: "resident"), Recorder<Int>())
        let mayGo = try occupy(thread)
        for number in 0..<10 { try thread.perform { seen.append(number) } }
        thread.stop()
        thread.stop()
        #expect(throws: RunLoopError(.threadEnded)) { try thread.perform { seen.append(-1) } }
        mayGo.open()
        #expect(thread.join())
        #expect(seen.elements == Array(0..<10))
        #expect(throws: RunLoopError(.threadEnded)) { try thread.perform { seen.append(-1) } }
        thread.stop()
        #expect(seen.count == 10)
    }

    @Test("S20: no accepted task is lost and no refused one is executed, however stop races with posting")
    func stopRace() async throws {
        for _ in 0..<50 {
            let (thread, executed) = (try ResidentThread(name: "resident"), Counter("executed tasks"))
            let (ready, go) = (Counter("posters"), Gate("the start"))
            let posters = (0..<4).map { _ in
                runOnThread { () -> Int in
                    ready.increment()
                    go.wait()
                    for accepted in 0..<1000 {
                        do { try thread.perform { executed.increment() } } catch { return accepted }
                    }
                    return 1000
                }
            }
            await ready.waitUntilCount(4)
            go.open()
            await executed.waitUntilCount(1)
            thread.stop()
            var accepted = 0
            for poster in posters { accepted += try await poster.join() }
            #expect(await thread.join())
            #expect(executed.value == accepted)
        }
    }

    @Test("tasks that join hold no thread, end at their limit or cancellation, and otherwise at the thread's end")
    func joinInTasks() async throws {
        let thread = try ResidentThread(name: "resident")
        let mayGo = try occupy(thread)
        thread.stop()
        let threads = threadCount()
        let joiners = (0..<50).map { number in
            Task { number.isMultiple(of: 2) ? await thread.join() : await thread.join(within: .seconds(3600)) }
        }
        let deadline = MonotonicInstant.after(.milliseconds(5))
        #expect(await !thread.join(within: .milliseconds(5)))
        #expect(MonotonicInstant.now >= deadline)
        #expect(threadCount() < threads + 20)
        for joiner in joiners.prefix(10) { joiner.cancel() }
        for joiner in joiners.prefix(10) { #expect(await !joiner.value) }
        mayGo.open()
        for joiner in joiners.dropFirst(10) { #expect(await joiner.value) }
        #expect(thread.loop.hasEnded)
    }

    @Test("a task that is cancelled at any moment of a join, or whose limit passes then, misses no end of the thread")
    func joinRace() async throws {
        for round in 0..<200 {
            let thread = try ResidentThread(name: "resident")
            let limit: Duration? = round.isMultiple(of: 3) ? .microseconds(round) : nil
            let joiner = Task { await thread.join(within: limit) }
            for _ in 0..<(round % 7) { await Task.yield() }
            if round.isMultiple(of: 2) { joiner.cancel() }
            thread.stop()
            if await joiner.value { #expect(thread.loop.hasEnded) }
            #expect(await thread.join())
        }
    }

    @Test("the thread may stop itself, in a task and in a nested run, and every run that is under way ends")
    func stopInside() throws {
        let (thread, trace) = (try ResidentThread(name: "resident"), Recorder<String>())
        try thread.perform {
            thread.loop.perform {
                thread.loop.perform {
                    thread.stop()
                    trace.append("stop")
                }
                trace.append("inner \(thread.loop.runGuarded())")
            }
            try thread.perform { trace.append("accepted") }
            trace.append("outer \(thread.loop.runGuarded())")
        }
        #expect(thread.join())
        #expect(trace.elements == ["accepted", "stop", "inner stopped", "outer stopped"])
    }

    @Test("when join returns, sources have been cancelled on the thread, and all that it held is released")
    func ended() throws {
        let (released, cancelled) = (Counter("released objects"), Recorder<Bool>())
        let thread = try ResidentThread(name: "resident")
        let number = Recorder<pid_t>()
        try thread.perform { number.append(sysThreadID()) }
        do {
            let probes = (0..<4).map { _ in LifeProbe(released) }
            thread.loop.add(
                RunLoopSource(cancel: { _, _ in cancelled.append(sysThreadID() == number.elements.first) }) {
                    _ = probes[0]
                })
            thread.loop.add(RunLoopTimer(fireDate: .distantFuture) { _ in _ = probes[1] })
            try thread.perform { _ = probes[2] }
            thread.loop.perform(in: ["never"]) { _ = probes[3] }
        }
        thread.stop()
        #expect(thread.join(within: Watchdog.longTimeout))
        #expect(cancelled.elements == [true])
        #expect(released.value == 4)
        #expect(thread.loop.hasEnded)
    }

    @Test("join waits no longer than its limit, and several may join")
    func join() async throws {
        let thread = try ResidentThread(name: "resident")
        let mayGo = try occupy(thread)
        thread.stop()
        let deadline = MonotonicInstant.after(.milliseconds(5))
        #expect(await !thread.join(within: .milliseconds(5)))
        #expect(MonotonicInstant.now >= deadline)
        #expect(await !thread.join(within: .seconds(-1)))
        let joiners = (0..<4).map { number in
            runOnThread { number.isMultiple(of: 2) ? thread.join() : thread.join(within: .seconds(3600)) }
        }
        mayGo.open()
        for joiner in joiners { #expect(try await joiner.join()) }
        #expect(await thread.join(within: .zero))
        #expect(await thread.join())
    }

    @Test("S20: the release of the object stops the thread, after the tasks that wait, without blocking")
    func ownerReleased() throws {
        let (seen, released) = (Recorder<Int>("tasks"), Counter("released objects"))
        let loop: ThreadRunLoop
        let mayGo: Gate
        do {
            let (thread, probe) = (try ResidentThread(name: "resident"), LifeProbe(released))
            loop = thread.loop
            mayGo = try occupy(thread)
            for number in 0..<10 { try thread.perform { seen.append(number) } }
            loop.add(idleSource())
            loop.add(RunLoopTimer(fireDate: .distantFuture) { _ in _ = probe })
        }
        #expect(!loop.hasEnded)
        mayGo.open()
        released.waitUntilCount(1)
        #expect(loop.hasEnded)
        try ResidentThread.waitUntilGone()
        #expect(seen.elements == Array(0..<10))
    }

    /// Posts tasks to a thread that is busy, releases its object here, and waits until the thread has gone.
    private func releaseOccupied(_ post: (ResidentThread) throws -> Void) throws {
        let ended = Gate("the end of the loop")
        let mayGo: Gate
        do {
            let thread = try ResidentThread(name: "resident")
            thread.loop.add(RunLoopSource(cancel: { _, _ in ended.open() }) {})
            mayGo = try occupy(thread)
            try post(thread)
        }
        mayGo.open()
        ended.wait()
        try ResidentThread.waitUntilGone()
    }

    @Test("S20: the last reference may be released on the thread itself")
    func releasedOnItself() throws {
        let loops = Recorder<ThreadRunLoop>()
        try releaseOccupied { thread in
            loops.append(thread.loop)
            try thread.perform { #expect(thread.isCurrent) }
        }
        #expect(loops.elements[0].hasEnded)
    }

    @Test("a task that holds the object keeps the thread until it has returned")
    func heldByTask() throws {
        let seen = Recorder<String>()
        try releaseOccupied { thread in
            try thread.perform {
                try thread.perform { seen.append("posted by a task") }
            }
        }
        #expect(seen.elements == ["posted by a task"])
    }
}

extension ResidentThread {
    /// Waits until the kernel shows no resident thread any more, for threads that cannot be joined.
    static func waitUntilGone() throws {
        let deadline = Watchdog.deadline
        while try residentThreadCount() > 0 {
            if .now >= deadline { return Watchdog.expired("a resident thread did not end") }
            sched_yield()
        }
    }

    private static func residentThreadCount() throws -> Int {
        try sysList("/proc/self/task").count { number in
            // A thread that has ended since it was listed has no file.
            guard let file = try? sysOpen("/proc/self/task/\(number)/comm", .reading),
                let name = try? sysRead(file.raw, capacity: 64)
            else { return false }
            return String(decoding: name, as: UTF8.self).hasPrefix("resident")
        }
    }
}
