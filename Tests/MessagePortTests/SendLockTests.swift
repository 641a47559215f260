// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("SendLock", .census) struct SendLockTests {
    @Test("a turn is one thread's, until it gives it back")
    func exclusive() {
        let turn = SendLock()
        #expect(turn.take(until: .distantPast))
        #expect(!turn.take(until: .distantPast))
        #expect(!turn.take(until: .after(.milliseconds(1))))
        turn.give()
        #expect(turn.take(until: .distantPast))
        turn.give()
    }

    @Test("those who wait get the turn in the order in which they came")
    func order() throws {
        let turn = SendLock()
        let order = Recorder<Int>()
        #expect(turn.take(until: .distantPast))
        let threads = (0..<4).map { index in
            defer { while turn.waitingCount < index + 1 { sched_yield() } }
            return runOnThread {
                guard turn.take(until: Watchdog.deadline) else { return }
                order.append(index)
                turn.give()
            }
        }
        // Nobody slips in before those who wait.
        turn.give()
        for thread in threads { try thread.join() }
        #expect(order.elements == [0, 1, 2, 3])
        #expect(turn.take(until: .distantPast))
    }

    @Test("who gives up leaves the line")
    func givesUp() throws {
        let turn = SendLock()
        #expect(turn.take(until: .distantPast))
        #expect(!turn.take(until: .after(.milliseconds(1))))
        let thread = runOnThread { turn.take(until: Watchdog.deadline) }
        while turn.waitingCount < 1 { sched_yield() }
        turn.give()
        #expect(try thread.join())
        #expect(!turn.take(until: .distantPast))
        turn.give()
        #expect(turn.take(until: .distantPast))
    }

    @Test("who does not wait for room waits for a holder that sends")
    func waitsForSender() throws {
        let turn = SendLock()
        #expect(turn.takeUnlessHeldUp())
        #expect(!turn.takeIfFree())
        let thread = runOnThread { turn.takeUnlessHeldUp() }
        while turn.waitingCount < 1 { sched_yield() }
        turn.give()
        #expect(try thread.join())
        turn.give()
        #expect(turn.takeIfFree())
    }

    @Test("who does not wait for room does not wait for a holder that does")
    func heldUp() throws {
        let turn = SendLock()
        #expect(turn.takeIfFree())
        let threads = (0..<2).map { _ in runOnThread { turn.takeUnlessHeldUp() } }
        let patient = runOnThread { turn.take(until: Watchdog.deadline) }
        while turn.waitingCount < 3 { sched_yield() }
        turn.holdUp()
        for thread in threads { #expect(try !thread.join()) }
        #expect(!turn.takeUnlessHeldUp())
        #expect(turn.waitingCount == 1)
        turn.goOn()
        turn.holdUp()
        turn.give()
        #expect(try patient.join())
        // The next holder is not held up because the last was.
        let another = runOnThread { turn.takeUnlessHeldUp() }
        while turn.waitingCount < 1 { sched_yield() }
        turn.give()
        #expect(try another.join())
    }

    @Test("who does not wait for room does not wait for a task that has got the turn and no thread yet")
    func taskWithoutThread() async throws {
        let (turn, executor, took) = (SendLock(), HeldJobs(), Counter())
        #expect(turn.takeIfFree())
        let task = Task(executorPreference: executor) {
            try await turn.take(waiting: SendWait(until: .distantFuture))
            took.increment()
        }
        while turn.waitingCount < 1 { executor.runAll() }
        let earlier = runOnThread { turn.takeUnlessHeldUp() }
        while turn.waitingCount < 2 { sched_yield() }
        turn.give()
        #expect(try await !earlier.join())
        #expect(try await !runOnThread { turn.takeUnlessHeldUp() }.join())
        #expect(took.value == 0)
        while took.value == 0 { executor.runAll() }
        try await task.value
        // It runs now, so it is waited for.
        let later = runOnThread { turn.takeUnlessHeldUp() }
        while turn.waitingCount < 1 { sched_yield() }
        turn.give()
        #expect(try await later.join())
    }

    /// Runs the jobs of tasks when a test says so.
    private final class HeldJobs: TaskExecutor {
        private let jobs = Mutex<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        func runAll() {
            let waiting = jobs.withLock { jobs in
                defer { jobs = [] }
                return jobs
            }
            for job in waiting { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }

    @Test("under contention with deadlines no turn is lost or given twice")
    func stress() throws {
        let turn = SendLock()
        let inside = Inside()
        try onThreads(4) { thread in
            for round in 0..<500 {
                guard turn.take(until: .after(.microseconds(round % 3 * 20))) else { continue }
                #expect(inside.count.add(1, ordering: .sequentiallyConsistent).newValue == 1)
                inside.count.subtract(1, ordering: .sequentiallyConsistent)
                turn.give()
            }
        }
        #expect(turn.take(until: .distantPast))
    }

    @Test("however it is asked for, by those who wait for room too, no turn is lost or given twice")
    func mixedStress() throws {
        let turn = SendLock()
        let inside = Inside()
        try onThreads(4) { thread in
            for round in 0..<1000 {
                let hasTurn =
                    switch (round + thread) % 3 {
                    case 0: turn.takeIfFree()
                    case 1: turn.takeUnlessHeldUp()
                    default: turn.take(until: .after(.microseconds(round % 3 * 20)))
                    }
                if !hasTurn { continue }
                #expect(inside.count.add(1, ordering: .sequentiallyConsistent).newValue == 1)
                if round % 5 == 0 {
                    turn.holdUp()
                    if round % 2 == 0 { turn.goOn() }
                }
                inside.count.subtract(1, ordering: .sequentiallyConsistent)
                turn.give()
            }
        }
        #expect(turn.waitingCount == 0)
        #expect(turn.takeIfFree())
    }

    @Test("who was held up and gives the turn leaves nobody held up")
    func heldUpAlone() {
        let turn = SendLock()
        #expect(turn.takeIfFree())
        turn.holdUp()
        #expect(!turn.takeUnlessHeldUp())
        turn.give()
        #expect(turn.takeUnlessHeldUp())
        turn.give()
        #expect(!turn.isTaken)
    }

    private final class Inside: Sendable {
        let count = Atomic<Int>(0)
    }
}
