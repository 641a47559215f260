// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// The thread that run loops replace (`LCThread` of the documents): it sleeps, checks whether there are actions, calls
/// them under its lock, and sleeps again. The documents sleep for 0.3 s; a millisecond shows the same.
private final class PollingThread: Sendable {
    private let actions = Mutex<[@Sendable () -> Void]>([])
    private let mustEnd = Atomic<Bool>(false)
    let polls = Counter("polls")
    let emptyPolls = Counter("polls that found nothing")

    func queueAction(_ action: @escaping @Sendable () -> Void) {
        actions.withLock { $0.append(action) }
    }

    func stop() {
        mustEnd.store(true, ordering: .releasing)
    }

    func main() {
        while !mustEnd.load(ordering: .acquiring) {
            let isEmpty = actions.withLock { actions in
                for action in actions { action() }
                defer { actions = [] }
                return actions.isEmpty
            }
            if isEmpty { emptyPolls.increment() }
            polls.increment()
            usleep(1000)
        }
    }
}

@Suite(.leakCheck(threadNames: ["resident"])) struct PollingThreadTests {
    private static let taskCount = 5
    private static let pollsBetween = 10

    @Test("S21: a polling thread wakes for nothing between its actions")
    func polling() async throws {
        let (polling, done) = (PollingThread(), Counter("actions"))
        let thread = runOnThread { polling.main() }
        for number in 1...Self.taskCount {
            await polling.emptyPolls.waitUntilCount(number * Self.pollsBetween)
            polling.queueAction { done.increment() }
            await done.waitUntilCount(number)
        }
        polling.stop()
        try await thread.join()
        #expect(polling.emptyPolls.value >= Self.taskCount * Self.pollsBetween)
        #expect(polling.polls.value - polling.emptyPolls.value <= Self.taskCount)
    }

    @Test("S20, S21: a resident thread wakes once for each task and never for nothing, in the time of as many polls")
    func resident() throws {
        let (thread, done) = (try ResidentThread(name: "resident"), Counter("tasks"))
        while !thread.loop.isWaiting { sched_yield() }
        let before = thread.loop.passCount
        for number in 1...Self.taskCount {
            for _ in 0..<Self.pollsBetween { usleep(1000) }  // the time in which the other thread polls
            #expect(thread.loop.isWaiting)
            try thread.perform { done.increment() }
            done.waitUntilCount(number)
            while !thread.loop.isWaiting { sched_yield() }
        }
        #expect(thread.loop.passCount - before == Self.taskCount)
        thread.stop()
        thread.join()
    }

    @Test("S21: what a polling thread cannot have: a task waits for no interval")
    func immediate() throws {
        let (thread, trace) = (try ResidentThread(name: "resident"), Recorder<Int>())
        for number in 0..<1000 {
            try thread.perform { trace.append(number) }
            trace.waitUntilCount(number + 1)
        }
        thread.stop()
        thread.join()
        #expect(trace.count == 1000)
    }
}
