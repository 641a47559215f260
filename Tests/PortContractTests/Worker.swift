// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A thread that runs its loop until it is asked to end.
final class Worker: Sendable {
    /// The thread's loop.
    let loop: ThreadRunLoop  // immutable
    private let thread: TestThread<Void>  // guards itself

    init(_ name: String = "worker") {
        let started = Gate("the start of a worker")
        let box = Box<ThreadRunLoop>()
        thread = runOnThread(name: name) {
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle, to: .common)
            // The loop makes what it needs to watch descriptors before they are counted.
            #expect(throws: Never.self) { try ThreadRunLoop.current.parker.wakeEvent() }
            box.value.withLock { $0 = .current }
            started.open()
            let result = ThreadRunLoop.current.run(mode: .default, until: Watchdog.deadline)
            if result != .stopped { Watchdog.expired("a worker's run ended: \(result)") }
            idle.invalidate()
        }
        started.wait()
        self.loop = box.value.withLock { $0 } ?? .current
    }

    /// Calls a closure on the thread and waits until it has returned.
    func perform<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) throws -> Success {
        let done = Gate("a block on a worker")
        let result = Box<Result<Success, any Error>>()
        loop.perform(in: [.common]) {
            result.value.withLock { $0 = Result { try body() } }
            done.open()
        }
        done.wait()
        return try #require(result.value.withLock { $0 }).get()
    }

    /// Stops the loop and waits until the thread is gone.
    func end() throws {
        loop.stop()
        try thread.join()
    }
}

/// A value that threads share, nil at first.
final class Box<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}

extension ThreadRunLoop {
    /// Waits until more than `count` sleeps are counted: the loop has nothing left to do, and the kernel is to wake it.
    func waitUntilAsleep(after count: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let deadline = Watchdog.deadline
        while waitCounts.sleeps <= count {
            guard MonotonicInstant.now < deadline else {
                Issue.record("the loop did not fall asleep", sourceLocation: sourceLocation)
                return
            }
            yieldThread()
        }
    }
}
