// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("Refusal", .leakCheck) struct RefusalTests {
    @Test("a call is made until it is refused, and never again", arguments: [ENOSYS, EPERM, EINVAL, EOPNOTSUPP])
    func remembered(code: CInt) throws {
        let refusal = Refusal()
        var calls = 0
        func call(_ result: Result<Int, SystemError>) throws -> Int {
            try refusal.avoid { () throws(SystemError) in
                calls += 1
                return try result.get()
            } otherwise: {
                2
            }
        }
        #expect(try call(.success(1)) == 1)
        #expect(throws: SystemError(EMFILE)) { try call(.failure(SystemError(EMFILE))) }
        #expect(refusal.error == nil)
        #expect(try call(.failure(SystemError(code))) == 2)
        #expect(refusal.error == SystemError(code))
        #expect(try call(.success(1)) == 2)
        #expect(calls == 3)
    }

    @Test("a call without an alternative fails at once with the first refusal, of those that are its own")
    func withoutAnotherWay() throws {
        let refusal = Refusal()
        func call(_ code: CInt) throws {
            try refusal.remember({ $0.code == ENOSYS }) { () throws(SystemError) in throw SystemError(code) }
        }
        #expect(throws: SystemError(EINVAL)) { try call(EINVAL) }
        #expect(throws: SystemError(ENOSYS)) { try call(ENOSYS) }
        #expect(throws: SystemError(ENOSYS)) { try call(EINVAL) }
    }

    #if PORT_FAULTS
    private static let codes: [CInt] = [ENOSYS, EPERM, EINVAL, EOPNOTSUPP]

    @Test(
        "where precise waits are refused, in mid-life, a set waits in whole milliseconds: not shorter, and once",
        arguments: codes)
    func milliseconds(code: CInt) throws {
        try Refusals.forgetting {
            let set = try EpollSet()
            let event = try EventDescriptor(.pipe)
            try set.add(event.raw, .readable, key: 1)
            #expect(set.wait(until: .distantPast).isEmpty)
            for limit in [Duration.nanoseconds(1), .microseconds(300), .milliseconds(1), .microseconds(1001)] {
                // The first call is made, and fails.
                let refused = SystemCallFaults.Rule(
                    .epoll_wait, .fail(code), times: Refusals.preciseWait.error == nil ? 1 : 0)
                let deadline = MonotonicInstant.after(limit)
                let (reports, calls) = SystemCallFaults.counting(with: [refused]) { set.wait(until: deadline) }
                #expect(reports.isEmpty)
                #expect(MonotonicInstant.now >= deadline)
                // A wait that ended early, or had a limit of zero, would be repeated.
                #expect(calls[.epoll_wait] == (limit == .nanoseconds(1) ? 2 : 1), "\(limit)")
            }
            #expect(Refusals.preciseWait.error == SystemError(code))
            event.signal()
            #expect(set.wait(until: .distantFuture) == [EpollReport(key: 1, events: .readable)])
            #expect(set.wait(until: .after(.seconds(100 * 86_400))).count == 1)
        }
    }

    @Test("memory is made without the seal that forbids execution where the kernel does not know it, asked once")
    func executableMemory() throws {
        try Refusals.forgetting {
            let rule = SystemCallFaults.Rule(.memfd_create, .fail(EINVAL))
            let (sizes, calls) = try SystemCallFaults.counting(with: [rule]) {
                try (0..<2).map { _ in try SharedMemory.make(size: 4096).memory.size }
            }
            #expect(sizes == [4096, 4096])
            #expect(calls[.memfd_create] == 3)
        }
    }

    @Test("memory of another process is accepted with the seal that forbids execution, and without")
    func anySeal() throws {
        try Refusals.forgetting {
            for rules in [[], [SystemCallFaults.Rule(.memfd_create, .fail(EINVAL))]] {
                let (file, _) = try SystemCallFaults.with(rules) { try SharedMemory.make(size: 4096).file }
                #expect(try SharedMemory.map(file, size: 4096) != nil)
            }
        }
    }

    @Test("a system that refuses memory files is asked once", arguments: codes)
    func noMemory(code: CInt) throws {
        Refusals.forgetting {
            let rule = SystemCallFaults.Rule(.memfd_create, .fail(code), times: .max)
            let calls = SystemCallFaults.counting(with: [rule]) {
                for _ in 0..<3 { #expect(throws: SystemError(code)) { try SharedMemory.make(size: 4096) } }
            }.calls
            #expect(calls[.memfd_create] == 2, "once with the seal, once without")
        }
    }

    @Test("a system that refuses watches of directories is asked once; one that has none left, each time")
    func noDirectoryWatch() throws {
        for (code, count) in [(ENOSYS, 1), (EPERM, 1), (EMFILE, 3)] {
            Refusals.forgetting {
                let rule = SystemCallFaults.Rule(.inotify_init, .fail(code), times: .max)
                let calls = SystemCallFaults.counting(with: [rule]) {
                    for _ in 0..<3 { #expect(throws: SystemError(code)) { _ = try DirectoryWatch() } }
                }.calls
                #expect(calls[.inotify_init] == count)
            }
        }
    }

    @Test("wake channels that are refused in mid-life, and the groups of peers, are asked for once")
    func askedOnce() throws {
        let (near, far) = try sysPacketSocketPair()
        try Refusals.forgetting {
            _ = try WakeChannel.make()
            for (call, code, ask) in [
                (.socketpair, EPERM, { _ = try WakeChannel.make() }),
                (.getsockopt, ENOPROTOOPT, { _ = try sysPeerGroups(near.rawValue) }),
            ] as [(SystemCall, CInt, () throws -> Void)] {
                let rule = SystemCallFaults.Rule(call, .fail(code), times: .max)
                let calls = SystemCallFaults.counting(with: [rule]) {
                    for _ in 0..<3 { #expect(throws: SystemError(code)) { try ask() } }
                }.calls
                #expect(calls[call] == 1)
            }
        }
        withExtendedLifetime(far) {}
    }

    @Test("an error of locks of one file is not an error of the system")
    func ofOneFile() throws {
        try Refusals.forgetting {
            let directory = try sysOpen("/", .directory)
            let (error, hits) = SystemCallFaults.with([.init(.fcntl, .fail(EINVAL))]) {
                #expect(throws: SystemError(EINVAL)) { try sysHasOpenFileLocks(directory.raw) }
                return Refusals.openFileLocks.error
            }
            #expect(error == nil && hits == 1)
        }
    }

    @Test("a shortage of descriptors while the system is asked for its locks is no refusal")
    func shortageOfAQuestion() throws {
        try Refusals.forgetting {
            let directory = try sysOpen("/", .directory)
            let (error, hits) = SystemCallFaults.with([.init(.fcntl, .fail(EINVAL)), .init(.open, .fail(EMFILE))]) {
                #expect(throws: SystemError(EINVAL)) { try sysHasOpenFileLocks(directory.raw) }
                return Refusals.openFileLocks.error
            }
            #expect(error == nil && hits == 2)
            #expect(try sysHasOpenFileLocks(directory.raw) == sysHasOpenFileLocks(directory.raw))
        }
    }

    @Test("a child's number that another child has by now gets no signal, and is not waited for")
    func reusedNumber() throws {
        let child = try sysSpawn(
            "/bin/sleep", arguments: ["86400"], environment: [:], in: nil, descriptors: [nil, nil, nil])
        // Our child had the number, and began at another time.
        let other = try LaunchedProcess(child, .event(Shared(EventDescriptor())), start: .seconds(1))
        let calls = try SystemCallFaults.counting { try other.signal(SIGKILL) }.calls
        #expect(calls[SystemCall.kill] == nil)
        #expect(try other.reap() == .unknown)
        let same = try LaunchedProcess(child, .event(Shared(EventDescriptor())), start: sysProcessStart(child))
        #expect(try same.reap() == nil)
        try same.signal(SIGKILL)
        #expect(waitpid(child, nil, 0) == child)
    }

    @Test("a system that refuses to watch any directory is asked once; one that refuses a directory, each time")
    func noWatchOfADirectory() throws {
        for (times, count) in [(Int.max, 2), (1, 3)] {
            try Refusals.forgetting {
                let watch = try DirectoryWatch()
                let rule = SystemCallFaults.Rule(.inotify_add_watch, .fail(EPERM), times: times)
                let (errors, calls) = SystemCallFaults.counting(with: [rule]) {
                    (0..<2).map { _ in
                        do throws(SystemError) {
                            _ = try watch.add("/", .created)
                            return nil as SystemError?
                        } catch {
                            return error
                        }
                    }
                }
                // The first error has the system asked whether it can watch the root.
                #expect(calls[.inotify_add_watch] == count)
                #expect(errors == [SystemError(EPERM), times == 1 ? nil : SystemError(EPERM)])
            }
        }
    }

    @Test("a kernel or filter without the rename that replaces nothing is asked once; a file system, each time")
    func noExclusiveRename() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let directory = try sysOpen(scratch.path, .directory)
            // A filter's EPERM is also the answer to a rename of nothing; a directory's is not.
            for (code, times, count) in [(ENOSYS, Int.max, 1), (EINVAL, .max, 3), (EPERM, .max, 2), (EPERM, 1, 4)] {
                try scratch.write("", to: "0")
                try Refusals.forgetting {
                    let rule = SystemCallFaults.Rule(.rename, .fail(code), times: times)
                    let calls = try SystemCallFaults.counting(with: [rule]) {
                        for index in 0..<3 { try sysRename("\(index)", to: "\(index + 1)", in: directory.raw) }
                    }.calls
                    #expect(calls[.rename] == count)
                }
                try sysUnlink("3", in: directory.raw)
            }
            // A shortage while the system is asked is no refusal.
            try scratch.write("", to: "0")
            try Refusals.forgetting {
                let rules = [(SystemCall.rename, EPERM), (.open, EMFILE)].map { SystemCallFaults.Rule($0, .fail($1)) }
                let (error, hits) = try SystemCallFaults.with(rules) {
                    try sysRename("0", to: "1", in: directory.raw)
                    return Refusals.exclusiveRename.error
                }
                #expect(error == nil && hits == 2)
            }
        }
    }
    #endif

    @Test(
        "calls that a filter refuses in mid-life are replaced: waits, event descriptors, and memory",
        arguments: ["ENOSYS", "EPERM"])
    func filterInMidLife(error: String) async throws {
        await #expect(processExitsWith: .success) { [error = error as String] in
            let set = try EpollSet()
            let event = try EventDescriptor()
            try set.add(event.raw, .readable, key: 1)
            #expect(set.wait(until: .distantPast).isEmpty)
            let before = try SharedMemory.make(size: 4096)
            refuseCalls("epoll_pwait2=\(error)", "eventfd2=\(error)", "memfd-noexec")
            let deadline = MonotonicInstant.after(.microseconds(100))
            #expect(set.wait(until: deadline).isEmpty)
            #expect(MonotonicInstant.now >= deadline)
            event.signal()
            #expect(set.wait(until: .distantFuture) == [EpollReport(key: 1, events: .readable)])
            #expect(try EventDescriptor().kind == .pipe)
            #expect(try SharedMemory.make(size: 4096).memory.size == before.memory.size)
            refuseCalls("memfd_create=\(error)")
            #expect(throws: SystemError.self) { try SharedMemory.make(size: 4096) }
        }
    }
}
