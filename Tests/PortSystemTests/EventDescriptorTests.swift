// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

/// An event descriptor for several threads.
private final class SharedEvent: Sendable {
    let descriptor: EventDescriptor

    init(_ kind: EventDescriptor.Kind) throws {
        descriptor = try EventDescriptor(kind)
    }
}

@Suite("EventDescriptor", .leakCheck) struct EventDescriptorTests {
    private func isReadable(_ event: borrowing EventDescriptor) throws -> Bool {
        try sysPoll(event.raw, .readable, until: .distantPast).contains(.readable)
    }

    @Test("signals coalesce: one drain clears ten thousand of them", arguments: EventDescriptor.Kind.allCases)
    func coalescing(kind: EventDescriptor.Kind) throws {
        let event = try EventDescriptor(kind)
        #expect(event.kind == kind)
        #expect(try !isReadable(event))
        for _ in 0..<10_000 { event.signal() }
        #expect(try isReadable(event))
        event.clear()
        #expect(try !isReadable(event))
        event.clear()
        event.signal()
        #expect(try isReadable(event))
    }

    @Test("a signal never blocks, even when the pipe is full", arguments: EventDescriptor.Kind.allCases)
    func full(kind: EventDescriptor.Kind) throws {
        let event = try EventDescriptor(kind)
        for _ in 0..<100_000 { event.signal() }
        event.clear()
        #expect(try !isReadable(event))
    }

    @Test("a signal from another thread ends a wait", arguments: EventDescriptor.Kind.allCases)
    func wakesSleeper(kind: EventDescriptor.Kind) async throws {
        let event = try SharedEvent(kind)
        let ringer = runOnThread { event.descriptor.signal() }
        let seen = try await onNewThread { try sysPoll(event.descriptor.raw, .readable, until: Watchdog.deadline) }
        #expect(seen == .readable)
        try await ringer.join()
    }

    @Test("both ends are close-on-exec and non-blocking", arguments: EventDescriptor.Kind.allCases)
    func flags(kind: EventDescriptor.Kind) throws {
        let before = openDescriptors()
        let event = try EventDescriptor(kind)
        let numbers = openDescriptors().subtracting(before).compactMap { CInt($0.split(separator: " ")[1]) }
        #expect(numbers.count == (kind == .pipe ? 2 : 1))
        for number in numbers {
            #expect(isCloseOnExec(number))
            #expect(isNonBlocking(number))
        }
        #expect(numbers.contains(event.raw))
    }

    #if PORT_FAULTS
    @Test(
        "a system that refuses eventfds gives pipes, and is asked once", arguments: [ENOSYS, EPERM, EINVAL, EOPNOTSUPP])
    func fallback(code: CInt) throws {
        try Refusals.forgetting {
            let first = try EventDescriptor().kind
            let rule = SystemCallFaults.Rule(.eventfd, .fail(code), times: .max)
            let (kinds, calls) = try SystemCallFaults.counting(with: [rule]) {
                [try EventDescriptor().kind, try EventDescriptor().kind]
            }
            #expect(first == .eventfd)
            #expect(kinds == [.pipe, .pipe])
            #expect(calls[.eventfd] == 1)
        }
    }

    @Test("a process without free descriptors gets an error, not a pipe")
    func noFallback() {
        #expect(throws: SystemError(EMFILE)) {
            try SystemCallFaults.with([.init(.eventfd, .fail(EMFILE))]) { _ = try EventDescriptor() }
        }
    }
    #endif
}
