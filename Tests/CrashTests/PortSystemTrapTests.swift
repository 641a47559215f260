// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Traps of PortSystem", .leakCheck) struct PortSystemTrapTests {
    @Test("closing a descriptor twice traps, and says what to do")
    func closeTwice() async throws {
        try await closeAgain(asOwner: false)
    }

    @Test("an owner whose descriptor was closed by another traps")
    func closeAnothers() async throws {
        try await closeAgain(asOwner: true)
    }

    /// Closes an open descriptor, and then once more: its owner does, or a call.
    private func closeAgain(asOwner isOwner: Bool) async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [isOwner = isOwner as Bool] in
            var lower = try lowerNumbers()
            let descriptor = try sysOpen("/dev/null", .reading)
            lower = []
            sysClose(descriptor.raw)
            if isOwner { _ = consume descriptor } else { sysClose(descriptor.release()) }
            _ = lower
        }
        expectSentence("was closed by code that does not own it. Pass a duplicate", in: result)
    }

    @Test("silencing a doorbell whose descriptor was closed by another traps", arguments: EventDescriptor.Kind.allCases)
    func silenceClosed(kind: EventDescriptor.Kind) async throws {
        let isPipe = kind == .pipe
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [isPipe = isPipe as Bool] in
            var lower = try lowerNumbers()
            let event = try EventDescriptor(isPipe ? .pipe : .eventfd)
            lower = []
            sysClose(event.raw)
            event.clear()
            _ = lower
        }
        expectSentence("An event descriptor cannot be read", in: result)
    }

    @Test("waiting on a set whose descriptor was closed by another traps")
    func waitOnClosed() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            var lower = try lowerNumbers()
            let set = try EpollSet()
            lower = []
            sysClose(set.raw)
            _ = set.wait(until: .distantPast)
            _ = lower
        }
        expectSentence("epoll_wait failed", in: result)
    }

    @Test("a process without a thread-local key left traps")
    func noKeyLeft() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            while true { _ = ThreadLocal<LifeOfAKey>() }
        }
        expectSentence("This process has no thread-local key left", in: result)
    }

    @Test("a thread that joins itself traps")
    func joinItself() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let own = OwnThread()
            own.thread.withLock { thread in
                thread = try? sysStartThread { own.join() }
            }
            while true { sleep(1) }
        }
        expectSentence("A thread cannot be joined", in: result)
    }
}

/// Holds the next descriptor numbers. What is opened while they are held, and closed after they are free again, has a
/// number that no other thread gets: the kernel gives the lowest free one.
private func lowerNumbers() throws -> [SharedDescriptor] {
    try (0..<64).map { _ in SharedDescriptor(try sysOpen("/dev/null", .reading)) }
}

private final class LifeOfAKey {}

/// A thread that can be reached from itself.
private final class OwnThread: Sendable {
    let thread = Mutex<SystemThread?>(nil)

    func join() {
        thread.withLock { $0.take() }?.join()
    }
}
