// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("SendLock", .leakCheck) struct SendLockTests {
    @Test("the lock is one thread's, until it unlocks it")
    func exclusive() {
        let lock = SendLock()
        #expect(lock.lock(until: .distantPast) == true)
        #expect(lock.lock(until: .distantPast) == false)
        #expect(lock.lock(until: .after(.milliseconds(1))) == false)
        lock.unlock()
        #expect(lock.lock(until: .distantPast) == true)
        lock.unlock()
    }

    @Test("waiting threads get the lock in the order in which they came")
    func order() throws {
        let lock = SendLock()
        let order = Recorder<Int>()
        #expect(lock.lock(until: .distantPast) == true)
        let threads = (0..<4).map { index in
            defer { while lock.waitingCount < index + 1 { sched_yield() } }
            return runOnThread {
                guard lock.lock(until: Watchdog.deadline) else { return }
                order.append(index)
                lock.unlock()
            }
        }
        // No thread gets the lock before those that wait.
        lock.unlock()
        for thread in threads { try thread.join() }
        #expect(order.elements == [0, 1, 2, 3])
        #expect(lock.lock(until: .distantPast) == true)
    }

    @Test("a thread that gives up leaves the queue")
    func givesUp() throws {
        let lock = SendLock()
        #expect(lock.lock(until: .distantPast) == true)
        #expect(lock.lock(until: .after(.milliseconds(1))) == false)
        let thread = runOnThread { lock.lock(until: Watchdog.deadline) }
        while lock.waitingCount < 1 { sched_yield() }
        lock.unlock()
        #expect(try thread.join())
        #expect(lock.lock(until: .distantPast) == false)
        lock.unlock()
        #expect(lock.lock(until: .distantPast) == true)
    }

    @Test("a thread that does not wait for room waits for a holder that sends")
    func waitsForSender() throws {
        let lock = SendLock()
        #expect(lock.lockUnlessHolderBlocks() == true)
        #expect(lock.tryLock() == false)
        let thread = runOnThread { lock.lockUnlessHolderBlocks() }
        while lock.waitingCount < 1 { sched_yield() }
        lock.unlock()
        #expect(try thread.join())
        lock.unlock()
        #expect(lock.tryLock() == true)
    }

    @Test("a thread that does not wait for room does not wait for a holder that does")
    func blocked() throws {
        let lock = SendLock()
        #expect(lock.tryLock() == true)
        let threads = (0..<2).map { _ in runOnThread { lock.lockUnlessHolderBlocks() } }
        let patient = runOnThread { lock.lock(until: Watchdog.deadline) }
        while lock.waitingCount < 3 { sched_yield() }
        lock.holderWillBlock()
        for thread in threads { #expect(try !thread.join()) }
        #expect(lock.lockUnlessHolderBlocks() == false)
        #expect(lock.waitingCount == 1)
        lock.holderDidContinue()
        lock.holderWillBlock()
        lock.unlock()
        #expect(try patient.join())
        // The next holder is not blocked because the last was.
        let another = runOnThread { lock.lockUnlessHolderBlocks() }
        while lock.waitingCount < 1 { sched_yield() }
        lock.unlock()
        #expect(try another.join())
    }

    @Test("a thread that does not wait for room does not wait for a task that has the lock but no thread yet")
    func taskWithoutThread() async throws {
        let lock = SendLock()
        let (executor, took) = (HeldJobs(), Counter())
        #expect(lock.tryLock() == true)
        let task = Task(executorPreference: executor) {
            try await lock.lock(waiting: TaskWaiter(until: .distantFuture))
            took.increment()
        }
        while lock.waitingCount < 1 { executor.runAll() }
        let earlier = runOnThread { lock.lockUnlessHolderBlocks() }
        while lock.waitingCount < 2 { sched_yield() }
        lock.unlock()
        #expect(try await !earlier.join())
        #expect(try await !runOnThread { lock.lockUnlessHolderBlocks() }.join())
        #expect(took.value == 0)
        while took.value == 0 { executor.runAll() }
        try await task.value
        // It runs now, so it is waited for.
        let later = runOnThread { lock.lockUnlessHolderBlocks() }
        while lock.waitingCount < 1 { sched_yield() }
        lock.unlock()
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

    @Test("under contention with deadlines the lock is never lost or held twice")
    func stress() throws {
        let lock = SendLock()
        let inside = Inside()
        try onThreads(4) { thread in
            for round in 0..<500 {
                guard lock.lock(until: .after(.microseconds(round % 3 * 20))) else { continue }
                #expect(inside.count.add(1, ordering: .sequentiallyConsistent).newValue == 1)
                inside.count.subtract(1, ordering: .sequentiallyConsistent)
                lock.unlock()
            }
        }
        #expect(lock.lock(until: .distantPast) == true)
    }

    @Test("however it is acquired, also by waiters for room, the lock is never lost or held twice")
    func mixedStress() throws {
        let lock = SendLock()
        let inside = Inside()
        try onThreads(4) { thread in
            for round in 0..<1000 {
                let isOwner =
                    switch (round + thread) % 3 {
                    case 0: lock.tryLock()
                    case 1: lock.lockUnlessHolderBlocks()
                    default: lock.lock(until: .after(.microseconds(round % 3 * 20)))
                    }
                if !isOwner { continue }
                #expect(inside.count.add(1, ordering: .sequentiallyConsistent).newValue == 1)
                if round % 5 == 0 {
                    lock.holderWillBlock()
                    if round % 2 == 0 { lock.holderDidContinue() }
                }
                inside.count.subtract(1, ordering: .sequentiallyConsistent)
                lock.unlock()
            }
        }
        #expect(lock.waitingCount == 0)
        #expect(lock.tryLock() == true)
    }

    @Test("a holder that waited for room and unlocks leaves no other blocked")
    func blockedAlone() {
        let lock = SendLock()
        #expect(lock.tryLock() == true)
        lock.holderWillBlock()
        #expect(lock.lockUnlessHolderBlocks() == false)
        lock.unlock()
        #expect(lock.lockUnlessHolderBlocks() == true)
        lock.unlock()
        #expect(lock.isLocked == false)
    }

    private final class Inside: Sendable {
        let count = Atomic<Int>(0)
    }
}
