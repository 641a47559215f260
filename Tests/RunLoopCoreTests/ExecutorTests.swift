// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// An actor whose code runs on a loop's thread.
actor Pinned {
    nonisolated let loop: ThreadRunLoop
    private(set) var values: [Int] = []
    private var isBusy = false

    init(to loop: ThreadRunLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func append(_ value: Int) -> Bool {
        values.append(value)
        return loop.isCurrent
    }

    /// Runs what the caller passes, as a part of the actor's code; reports when it is entered while it is running.
    func exclusively<Success>(_ body: @Sendable () -> Success) -> Success {
        #expect(!isBusy)
        isBusy = true
        defer { isBusy = false }
        return body()
    }
}

@Suite(.leakCheck(threadNames: ["resident"], settles: true)) struct ExecutorTests {
    /// Runs a closure with a resident thread, which is gone afterwards.
    private func withResident<Success>(
        _ body: (ThreadRunLoop) async throws -> Success
    ) async throws -> Success {
        let thread = try ResidentThread(name: "resident")
        let result: Success
        do {
            result = try await body(thread.loop)
        } catch {
            thread.stop()
            await thread.join()
            throw error
        }
        thread.stop()
        await thread.join()
        return result
    }

    @Test("an actor whose executor is a loop runs on the loop's thread, one call after the other")
    func actor() async throws {
        try await withResident { loop in
            let pinned = Pinned(to: loop)
            for number in 0..<100 { #expect(await pinned.append(number)) }
            #expect(await pinned.values == Array(0..<100))
        }
    }

    @Test("calls from many tasks are each made once, and never two at a time")
    func manyTasks() async throws {
        try await withResident { loop in
            let pinned = Pinned(to: loop)
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<1000 {
                    group.addTask {
                        await pinned.exclusively { #expect(loop.isCurrent) }
                        _ = await pinned.append(number)
                    }
                }
            }
            #expect(await Set(pinned.values) == Set(0..<1000))
            #expect(await pinned.values.count == 1000)
        }
    }

    @Test("two actors of one loop share its thread without a change of threads between them")
    func twoActors() async throws {
        try await withResident { loop in
            let (first, second) = (Pinned(to: loop), Pinned(to: loop))
            let passes = await first.callDirectly(second)
            #expect(passes == 0)
        }
    }

    @Test("a task that prefers a loop calls functions without an isolation in the same pass")
    func samePass() async throws {
        try await withResident { loop in
            let passes = await Task(executorPreference: loop) {
                let before = loop.passCount
                for _ in 0..<10 { _ = await isCurrent(loop) }
                return loop.passCount - before
            }.value
            #expect(passes == 0)
        }
    }

    @Test("assumeIsolated works in a timer, a source, a block and an observer of the actor's loop")
    func assumeIsolated() async throws {
        try await withResident { loop in
            let (pinned, seen) = (Pinned(to: loop), Counter("handlers"))
            let handle: @Sendable (Int) -> Void = { value in
                pinned.assumeIsolated { _ = $0.append(value) }
                seen.increment()
            }
            loop.add(RunLoopTimer(fireDate: .distantPast) { _ in handle(1) })
            let custom = RunLoopSource { handle(2) }
            loop.add(custom)
            custom.signal()
            let mailbox = Mailbox { handle($0) }
            loop.add(mailbox.source)
            mailbox.put(3)
            loop.perform { handle(4) }
            loop.add(RunLoopObserver(activities: .beforeTimers, repeats: false) { _, _ in handle(5) })
            loop.wakeUp()
            await seen.waitUntilCount(5)
            #expect(await pinned.values.sorted() == [1, 2, 3, 4, 5])
            for item in [custom, mailbox.source] { item.invalidate() }
        }
    }

    @Test("the loop reports whether the calling thread is its own")
    func isIsolating() async throws {
        try await withResident { loop in
            #expect(loop.isIsolatingCurrentContext() == false)
            let answers = Recorder<Bool?>("answers")
            loop.perform {
                loop.checkIsolated()
                answers.append(loop.isIsolatingCurrentContext())
            }
            #expect(await answers.waitUntilCount(1) == [true])
        }
    }

    @Test("a task that prefers a loop runs on its thread, also after it was suspended")
    func taskPreference() async throws {
        try await withResident { loop in
            let task = Task(executorPreference: loop) {
                var isCurrent = [loop.isCurrent]
                await Task.yield()
                isCurrent.append(loop.isCurrent)
                try await Task.sleep(for: .microseconds(1))
                isCurrent.append(loop.isCurrent)
                return isCurrent
            }
            let isCurrent = try await task.value
            #expect(isCurrent == [true, true, true])
            #expect(!loop.isCurrent)
        }
    }

    @Test("withTaskExecutorPreference runs its closure, and the child tasks in it, on the loop's thread")
    func scopedPreference() async throws {
        try await withResident { loop in
            let answers = await withTaskExecutorPreference(loop) {
                async let child = isCurrent(loop)
                return [loop.isCurrent, await child]
            }
            #expect(answers == [true, true])
            #expect(!loop.isCurrent)
        }
    }

    private func isCurrent(_ loop: ThreadRunLoop) async -> Bool {
        loop.isCurrent
    }

    @Test("an actor without an executor of its own runs on the loop that its task prefers")
    func defaultActor() async throws {
        try await withResident { loop in
            let plain = Plain()
            let isCurrent = await Task(executorPreference: loop) { await plain.isCurrent(loop) }.value
            #expect(isCurrent)
        }
    }

    @Test("jobs and blocks run in the order in which they were posted")
    func order() async throws {
        try await withResident { loop in
            let (seen, mayGo) = (Recorder<Int>("blocks and jobs"), Gate("the test"))
            loop.perform { mayGo.wait() }
            for number in 0..<10 {
                if number.isMultiple(of: 2) {
                    loop.perform { seen.append(number) }
                } else {
                    Task(executorPreference: loop) { seen.append(number) }
                }
            }
            mayGo.open()
            #expect(await seen.waitUntilCount(10) == Array(0..<10))
        }
    }

    @Test("a job wakes a loop that sleeps")
    func wakes() async throws {
        try await withResident { loop in
            for _ in 0..<100 {
                while !loop.isWaiting { sched_yield() }
                await Task(executorPreference: loop) {}.value
            }
        }
    }

    @Test("jobs run in the common modes only, and keep a run going while they wait")
    func modes() async throws {
        let seen = Recorder<String>("jobs")
        try await onLoop { loop in
            Task(executorPreference: loop) { seen.append("job") }
            loop.add(idleSource(), to: "private")
            #expect(loop.run(mode: "private", for: .zero) == .timedOut)
            #expect(seen.count == 0)
            #expect(loop.runGuarded() == .finished)
            #expect(seen.count == 1)
        }
    }
}

/// An actor that has no executor of its own.
private actor Plain {
    func isCurrent(_ loop: ThreadRunLoop) -> Bool { loop.isCurrent }
}

extension Pinned {
    /// Calls an actor of the same loop.
    ///
    /// - Returns: how many passes the loop has made meanwhile.
    fileprivate func callDirectly(_ other: Pinned) async -> Int {
        let before = loop.passCount
        for number in 0..<10 { _ = await other.append(number) }
        return loop.passCount - before
    }
}
