// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("DirectoryWatch", .leakCheck) struct DirectoryWatchTests {
    @Test("changes of files are reported in their order, with their names")
    func files() throws {
        try withScratchDirectory { scratch in
            let kernel = try DirectoryWatch()
            let all: DirectoryEvents = [.created, .modified, .closedAfterWriting, .movedOut, .movedIn, .deleted]
            let watch = try kernel.add(scratch.path, all)
            #expect(try kernel.reports() == [])
            do {
                let directory = try sysOpen(scratch.path, .directory)
                let file = try sysOpen("a", in: directory.raw, .creating)
                try sysWriteAll(file.raw, [1, 2, 3])
                try sysTruncate(file.raw, to: 1)
            }
            #expect(rename(scratch.path("a"), scratch.path("b")) == 0)
            #expect(unlink(scratch.path("b")) == 0)
            let reports = try kernel.reports()
            #expect(reports.allSatisfy { $0.watch == watch })
            #expect(reports.map(\.name) == ["a", "a", "a", "a", "b", "b"])
            // Equal reports that follow each other are one.
            #expect(reports.map(\.events) == [.created, .modified, .closedAfterWriting, .movedOut, .movedIn, .deleted])
        }
    }

    @Test("a directory reports its own move, and its parent what was made and removed in it")
    func directories() throws {
        try withScratchDirectory { scratch in
            let kernel = try DirectoryWatch()
            let parent = try kernel.add(scratch.path, [.created, .deleted])
            #expect(mkdir(scratch.path("a"), 0o700) == 0)
            let own = try kernel.add(scratch.path("a"), .selfMoved)
            #expect(own != parent)
            #expect(rename(scratch.path("a"), scratch.path("b")) == 0)
            #expect(rmdir(scratch.path("b")) == 0)
            let seen = try kernel.reports().filter { !$0.events.contains(.init(rawValue: 0x8000)) }  // IN_IGNORED
            #expect(seen.map(\.watch) == [parent, own, parent])
            #expect(seen.map(\.name) == ["a", "", "b"])
            #expect(seen[0].events.contains(.created) && seen[1].events.contains(.selfMoved))
            #expect(seen[2].events.contains(.deleted))
        }
    }

    @Test("a directory is watched once, whatever the path, and only directories are")
    func refusals() throws {
        try withScratchDirectory { scratch in
            let kernel = try DirectoryWatch()
            let first = try kernel.add(scratch.path, .created)
            #expect(try kernel.add(scratch.path + "/.", .created) == first)
            try scratch.write("", to: "file")
            func code(_ path: String) -> CInt? {
                do throws(SystemError) {
                    _ = try kernel.add(path, .created)
                    return nil
                } catch {
                    return error.code
                }
            }
            #expect(code(scratch.path("file")) == ENOTDIR)
            #expect(code(scratch.path("missing")) == ENOENT)
        }
    }

    @Test("a report that says that reports were lost has no watch and no name")
    func overflow() {
        let bytes: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        #expect(DirectoryWatch.decode(bytes[...]) == [DirectoryReport(watch: -1, events: .overflow)])
        #expect(DirectoryWatch.decode(bytes.dropLast()) == [])
    }

    @Test("reports are read one after the other, names without the zeros behind them, a torn one not at all")
    func decoding() {
        let one: [UInt8] = [3, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 0x61, 0x62, 0, 0]
        let report = DirectoryReport(watch: 3, events: .modified, name: "ab")
        #expect(DirectoryWatch.decode((one + one)[...]) == [report, report])
        for count in 0..<one.count {
            #expect(DirectoryWatch.decode((one + one.prefix(count))[...]) == [report], "\(count)")
        }
    }

    @Test("the end of a process that has a file open for writing is reported, 100 times in a row")
    func killedWriter() throws {
        try withScratchDirectory { scratch in
            let kernel = try DirectoryWatch()
            for _ in 0..<100 {
                let writer = try ChildProcess(
                    "/bin/sh", ["-c", "exec 9>'\(scratch.path("file"))'; echo ready; read line"])
                #expect(try writer.nextLine() == "ready")
                let watch = try kernel.add(scratch.path, .closedAfterWriting)
                writer.kill()
                _ = try sysPoll(kernel.raw, .readable, until: Watchdog.deadline)
                #expect(try kernel.reports().map(\.name) == ["file"])
                kernel.remove(watch)
                try writer.waitForExit()
                _ = try kernel.reports()
            }
        }
    }
}

@Suite("Inherited sockets and other processes", .leakCheck) struct InheritedSocketTests {
    @Test("a socket reports whether it listens, and its path")
    func sockets() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let socket = try sysPacketSocket()
            #expect(try sysSocketPath(socket.raw) == nil)
            let path = scratch.path("socket")
            try sysBind(socket.raw, path: path)
            #expect(try sysSocketPath(socket.raw) == path)
            #expect(try !sysIsListening(socket.raw))
            try sysListen(socket.raw, backlog: 1)
            #expect(try sysIsListening(socket.raw))
            let pair = try sysPacketSocketPair()
            #expect(try sysSocketPath(pair.0.rawValue) == nil)
            let longest = scratch.path + "/" + String(repeating: "x", count: 106 - scratch.path.utf8.count)
            let other = try sysPacketSocket()
            try sysBind(other.raw, path: longest)
            #expect(try sysSocketPath(other.raw) == longest)
        }
    }

    @Test("a descriptor that is no socket is an error")
    func noSockets() throws {
        let file = try sysOpen("/dev/null", .reading)
        let raw = file.raw
        #expect(throws: SystemError(ENOTSOCK)) { try sysIsListening(raw) }
        #expect(throws: SystemError(ENOTSOCK)) { try sysSocketPath(raw) }
        #expect(throws: SystemError(EBADF)) { try sysIsListening(-1) }
        withExtendedLifetime(file) {}
    }

    @Test("a descriptor becomes non-blocking")
    func nonBlocking() throws {
        var ends: [CInt] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { sysClose(end) } }
        #expect(fcntl(ends[0], F_GETFL) & O_NONBLOCK == 0)
        try sysSetNonBlocking(ends[0])
        #expect(fcntl(ends[0], F_GETFL) & O_NONBLOCK != 0)
    }

    @Test("a process that does not exist has no descriptor and no start")
    func noProcess() throws {
        let there = try sysProcessDescriptor(of: 0x3FFF_FFFF) != nil
        #expect(!there)
        #expect(sysProcessStart(0x3FFF_FFFF) == nil)
    }

    @Test("the number of a thread is not the number of a process")
    func noThread() throws {
        try onNewThread {
            let there = try sysProcessDescriptor(of: sysThreadID()) != nil
            #expect(!there)
            #expect(sysHasEnded(sysThreadID()))
        }
    }

    private func descriptor(of process: pid_t) throws -> FileDescriptor {
        guard let descriptor = try sysProcessDescriptor(of: process) else { throw SystemError(ESRCH) }
        return descriptor
    }

    @Test(
        "a running process's descriptor is readable once it has ended, and its start is between the machine's and now"
    )
    func process() throws {
        let child = try ChildProcess("/bin/cat")
        let descriptor = SharedDescriptor(try descriptor(of: child.processID))
        #expect(try sysPoll(descriptor.rawValue, .readable, until: .distantPast) == [])
        let start = try #require(sysProcessStart(child.processID))
        #expect(start > .zero && start <= sysTimeSinceBoot())
        #expect(sysProcessStart(child.processID) == start)
        #expect(try #require(sysProcessStart(sysProcessID())) <= start)
        child.kill()
        let seen = try sysPoll(descriptor.rawValue, .readable, until: Watchdog.deadline)
        #expect(seen.contains(.readable))
        try child.waitForExit()
        #expect(sysProcessStart(child.processID) == nil)
    }
}
