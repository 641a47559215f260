// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@Suite("EpollSet", .leakCheck) struct EpollSetTests {
    @Test("a set is close-on-exec, and an empty one waits until its deadline")
    func empty() throws {
        let set = try EpollSet()
        #expect(isCloseOnExec(set.raw))
        let deadline = MonotonicInstant.after(.milliseconds(1))
        #expect(set.wait(until: deadline).isEmpty)
        #expect(MonotonicInstant.now >= deadline)
    }

    @Test("a ready member is reported with its key, as long as it is ready")
    func levelTriggered() throws {
        let set = try EpollSet()
        let event = try EventDescriptor()
        try set.add(event.raw, .readable, key: 42)
        #expect(set.wait(until: .distantPast).isEmpty)
        event.signal()
        for _ in 0..<2 {
            #expect(set.wait(until: Watchdog.deadline) == [EpollReport(key: 42, events: .readable)])
        }
        event.clear()
        #expect(set.wait(until: .distantPast).isEmpty)
    }

    @Test("a ready member ends a wait without limit")
    func wakesSleeper() async throws {
        let (near, far) = try sysPacketSocketPair()
        let waiting = Gate("the waiting thread")
        let thread = runOnThread {
            let set = try EpollSet()
            try set.add(far.rawValue, [.readable, .peerClosed], key: 1)
            waiting.open()
            return set.wait(until: .distantFuture)
        }
        await waiting.wait()
        #expect(try send(near, [1]) == .sent)
        #expect(try await thread.join() == [EpollReport(key: 1, events: .readable)])
    }

    @Test("a member waits for what it was changed to, under its new key")
    func modify() throws {
        let set = try EpollSet()
        let pair = try sysPacketSocketPair()
        try set.add(pair.0.rawValue, .readable, key: 1)
        #expect(set.wait(until: .distantPast).isEmpty)
        try set.modify(pair.0.rawValue, .writable, key: 2)
        #expect(set.wait(until: .distantPast) == [EpollReport(key: 2, events: .writable)])
    }

    @Test("a removed member is no longer reported; removing it again, or after it was closed, is no error")
    func remove() throws {
        let set = try EpollSet()
        let number: CInt
        do {
            let event = try EventDescriptor()
            number = event.raw
            try set.add(event.raw, .readable, key: 1)
            event.signal()
            set.remove(event.raw)
            #expect(set.wait(until: .distantPast).isEmpty)
            set.remove(event.raw)
        }
        set.remove(number)
    }

    @Test("a closed member has left; one closed while a duplicate lives is still reported, under its old key")
    func stale() throws {
        let set = try EpollSet()
        let copy: FileDescriptor
        do {
            let first = try EventDescriptor()
            let second = try EventDescriptor()
            try set.add(first.raw, .readable, key: 1)
            try set.add(second.raw, .readable, key: 2)
            first.signal()
            second.signal()
            copy = try sysDuplicate(second.raw)
        }
        #expect(set.wait(until: .distantPast) == [EpollReport(key: 2, events: .readable)])
        _ = copy.raw
    }

    @Test("a set can be a member of another set")
    func nested() throws {
        let outer = try EpollSet()
        let inner = try EpollSet()
        let event = try EventDescriptor()
        try inner.add(event.raw, .readable, key: 1)
        try outer.add(inner.raw, .readable, key: 2)
        #expect(outer.wait(until: .distantPast).isEmpty)
        event.signal()
        #expect(outer.wait(until: .distantPast) == [EpollReport(key: 2, events: .readable)])
        #expect(inner.wait(until: .distantPast) == [EpollReport(key: 1, events: .readable)])
    }

    @Test("a regular file cannot be waited on, a member not added twice, a closed number not added")
    func refusals() throws {
        try withScratchDirectory { scratch in
            let set = try EpollSet()
            let file = try sysOpen(scratch.write("", to: "file"), .reading)
            #expect(throws: SystemError(EPERM)) { try set.add(file.raw, .readable, key: 1) }
            let event = try EventDescriptor()
            try set.add(event.raw, .readable, key: 1)
            #expect(throws: SystemError(EEXIST)) { try set.add(event.raw, .readable, key: 2) }
            #expect(throws: SystemError(EBADF)) { try set.add(-1, .readable, key: 3) }
            let other = try EventDescriptor()
            #expect(throws: SystemError(ENOENT)) { try set.modify(other.raw, .readable, key: 4) }
        }
    }

    @Test(
        "more ready members than one call reports come with the next calls, each in turn", arguments: [1, 7, 64, 500])
    func limit(limit: Int) throws {
        let set = try EpollSet()
        var members: [SharedDescriptor] = []
        for key in 0..<100 {
            let pair = try sysPacketSocketPair()
            try set.add(pair.0.rawValue, .writable, key: UInt64(key))
            members += [pair.0, pair.1]
        }
        var seen: Set<UInt64> = []
        for _ in 0..<100 {
            let reports = set.wait(until: .distantPast, limit: limit)
            #expect(!reports.isEmpty && reports.count <= min(limit, 64))
            seen.formUnion(reports.map(\.key))
        }
        #expect(seen.count == 100)
        members = []
    }

    @Test("a peer that goes is reported as peer closed, hang-up and readable")
    func peerGone() throws {
        let set = try EpollSet()
        var (near, far): (SharedDescriptor, SharedDescriptor?) = try sysPacketSocketPair()
        try set.add(near.rawValue, [.readable, .peerClosed], key: 1)
        #expect(far != nil)
        far = nil
        #expect(
            set.wait(until: .distantPast) == [EpollReport(key: 1, events: [.readable, .peerClosed, .hangUp])])
        near = try sysPacketSocketPair().0
    }

    @Test("one descriptor can be waited for without a set")
    func poll() throws {
        let event = try EventDescriptor()
        #expect(try sysPoll(event.raw, .readable, until: .distantPast).isEmpty)
        let deadline = MonotonicInstant.after(.milliseconds(1))
        #expect(try sysPoll(event.raw, .readable, until: deadline).isEmpty)
        #expect(MonotonicInstant.now >= deadline)
        event.signal()
        #expect(try sysPoll(event.raw, [.readable], until: .distantFuture) == .readable)
    }
}
