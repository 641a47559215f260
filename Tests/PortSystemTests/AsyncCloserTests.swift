// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import Glibc
@testable import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("AsyncCloser", .leakCheck) struct AsyncCloserTests {
    @Test(
        "descriptors are closed in the order in which they were released, so that no releaser waits behind later ones")
    func order() async throws {
        try await onNewThread {
            let closed = Recorder<Int>()
            try AsyncCloser.suspended { () throws in
                for number in 0..<40 {
                    let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
                    try #require(descriptor >= 0)
                    AsyncCloser.close(descriptor, of: Releaser(number, closed))
                }
                #expect(closed.elements == [])
            }
            #expect(closed.waitUntilCount(40) == Array(0..<40))
        }
    }

    @Test("F-A9: a caller that a file blocks, because no thread can be started, leaves nothing behind when it is done")
    func blockedCaller() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                let lingering = try LingeringSocket()
                let number = try lingering.takeNumber()
                let blocked = runOnThread {
                    withoutThreads { AsyncCloser.close(number) }
                }
                while AsyncCloser.isIdle { sched_yield() }
                let closed = CloseCount()
                // While a caller is blocked, the others pass it sooner or later.
                let deadline = Watchdog.deadline
                let null = try nullDevice()
                withoutThreads {
                    AsyncCloser.close(null, of: closed)
                    while closed.value == 0, .now < deadline { AsyncCloser.start() }
                }
                #expect(closed.value > 0)
                try lingering.letGo()
                try blocked.join()
                #expect(AsyncCloser.isIdle)
            }
        }
    }

    @Test(
        "a close that a file blocks delays what is queued behind it for a while, although nothing else is closed",
        arguments: [false, true])
    func behindBlocked(areTogether: Bool) async {
        await #expect(processExitsWith: .success) { [areTogether] in
            try await onNewThread {
                let (lingering, closed) = (try LingeringSocket(), CloseCount())
                let (number, null) = (try lingering.takeNumber(), try nullDevice())
                if areTogether {
                    AsyncCloser.suspended {
                        AsyncCloser.close(number)
                        AsyncCloser.close(null, of: closed)
                    }
                } else {
                    AsyncCloser.close(number)
                    AsyncCloser.close(null, of: closed)
                }
                let deadline = Watchdog.deadline
                while closed.value == 0, .now < deadline { sched_yield() }
                #expect(closed.value == 1)
                #expect(!AsyncCloser.isIdle, "the close did not wait")
                try lingering.letGo()
                #expect(AsyncCloser.isIdle)
            }
        }
    }

    @Test("F-A10: while no thread can be started a descriptor is closed before its last releaser returns")
    func callersTogether() async {
        await #expect(processExitsWith: .success) {
            let (closed, meetings) = (CloseCount(), [Meeting(), Meeting(), Meeting()])
            let (lostAt, isOver) = (CloseCount(), CloseCount())
            // On a busy machine a meeting takes as long as other programs occupy the processors.
            let end = MonotonicInstant.after(.seconds(5))
            let null = SharedDescriptor(owning: try nullDevice())
            let threads = (0..<2).map { _ in
                runOnThread {
                    try withoutThreads {
                        for round in 1...20_000 where lostAt.value == 0 && isOver.value == 0 {
                            let descriptor = try sysDuplicate(null.rawValue).release()
                            meetings[0].wait(for: 2 * round)
                            AsyncCloser.close(descriptor, of: closed)
                            meetings[1].wait(for: 2 * round)
                            if closed.value != 2 * round { lostAt.set(round) }
                            if .now >= end { isOver.set(1) }
                            meetings[2].wait(for: 2 * round)  // both know it
                        }
                    }
                }
            }
            for thread in threads { try await thread.join() }
            #expect(lostAt.value == 0)
            #expect(AsyncCloser.isIdle)
        }
    }
}

/// Runs `body` on a thread that can start no other.
private func withoutThreads<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    _ = try SystemCallFaults.with([.init(.clone, .fail(EAGAIN), times: .max)], body)
}

private func nullDevice() throws -> CInt { try sysOpen("/dev/null", .reading).release() }

/// Counts what was closed.
private final class CloseCount: CloseObserver {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }
    func set(_ value: Int) { count.store(value, ordering: .sequentiallyConsistent) }
    func willClose() {}
    func didClose() { count.add(1, ordering: .sequentiallyConsistent) }
}

/// A point at which two threads meet repeatedly.
private final class Meeting: Sendable {
    private let count = Atomic<Int>(0)

    /// Waits until `wanted` threads have come in all, the caller included.
    func wait(for wanted: Int) {
        count.add(1, ordering: .sequentiallyConsistent)
        while count.load(ordering: .sequentiallyConsistent) < wanted { sched_yield() }
    }
}

private final class Releaser: CloseObserver {
    private let number: Int
    private let closed: Recorder<Int>

    init(_ number: Int, _ closed: Recorder<Int>) {
        (self.number, self.closed) = (number, closed)
    }

    func willClose() {}
    func didClose() { closed.append(number) }
}

#endif
