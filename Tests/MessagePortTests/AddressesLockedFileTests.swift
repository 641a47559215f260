// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("LockedFile", .leakCheck) struct AddressesLockedFileTests {
    let scratch: AddressScratch
    let directory: TrustedDirectory

    init() throws {
        scratch = try AddressScratch()
        directory = try TrustedDirectory.open(path: scratch.path)
    }

    @Test("a free file is locked, and is held for all others, which can read it")
    func held() throws {
        let file = try lock("a")
        #expect(try heldContents("a") == [])
        try file.write([1, 2, 3, 4, 5])
        #expect(try heldContents("a") == [1, 2, 3, 4, 5])
        try file.write([6, 7])
        #expect(try heldContents("a") == [6, 7])
        #expect(try LockedFile.isLocked("a", in: directory))
        #expect(try isFree("b"))
        #expect(file.checkCurrent() == true)
    }

    @Test("a file that is released stays behind unlocked, and the next owner locks it")
    func letGo() throws {
        do {
            let file = try lock("a")
            try file.write([9])
        }
        #expect(try !LockedFile.isLocked("a", in: directory))
        #expect(try LockedFile.contents("a", in: directory) == [9])
        #expect(try isFree("a"))
    }

    @Test("a removed file is gone, and the name is free")
    func removed() throws {
        let file = try lock("a")
        file.remove()
        #expect(try sysStatus("a", in: directory.raw) == nil)
        #expect(try !LockedFile.isLocked("a", in: directory))
        #expect(try LockedFile.contents("a", in: directory) == nil)
        #expect(try isFree("a"))
    }

    @Test("reading a free file does not lock it, and reading an absent one makes none")
    func reading() throws {
        try scratch.makeFile("a", [1])
        #expect(try !LockedFile.isLocked("a", in: directory))
        #expect(try !LockedFile.isLocked("none", in: directory))
        #expect(try LockedFile.contents("none", in: directory) == nil)
        #expect(try sysList(scratch.path) == ["a"])
    }

    @Test("no more than the limit is read of a large file")
    func large() throws {
        try scratch.makeFile("a", [UInt8](repeating: 7, count: LockedFile.readLimit + 5000))
        #expect(try LockedFile.contents("a", in: directory) == [UInt8](repeating: 7, count: LockedFile.readLimit))
    }

    @Test("an owner whose file another process removed does not remove the next owner's")
    func strangerRemoved() throws {
        let first = try lock("a")
        try sysUnlink("a", in: directory.raw)
        #expect(first.checkCurrent() == false)
        let second = try lock("a")
        first.remove()
        #expect(second.checkCurrent() == true)
        #expect(try LockedFile.isLocked("a", in: directory))
    }

    @Test("a link, a directory, a FIFO and a socket are refused", arguments: ["link", "directory", "fifo", "socket"])
    func refused(name: String) throws {
        try scratch.makeFile("target", [1])
        #expect(symlink(scratch.path("target"), scratch.path("link")) == 0)
        _ = try sysMakeDirectory(scratch.path("directory"))
        #expect(mkfifo(scratch.path("fifo"), 0o600) == 0)
        let socket = try sysPacketSocket()
        try sysBind(socket.raw, path: scratch.path("socket"))
        try expectRefusal(name == "link" ? .symbolicLink : .notRegularFile, of: name)
    }

    @Test("a file that is open to other users is refused", arguments: [0o640, 0o604, 0o660, 0o602, 0o601] as [mode_t])
    func openToOthers(mode: mode_t) throws {
        try scratch.makeFile("a", mode: mode)
        try expectRefusal(.openToOthers, of: "a")
    }

    @Test("another user's file is refused", .enabled(if: isRoot, "only root can give a file away"))
    func otherOwner() throws {
        try scratch.makeFile("a")
        #expect(chown(scratch.path("a"), otherUser, otherUser) == 0)
        try expectRefusal(.otherOwner, of: "a")
    }

    @Test("the lock of a process that was killed is free at once, and its file says what it wrote")
    func killed() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [root = root as String] in
            let directory = try TrustedDirectory.open(path: root)
            guard case .locked(let file) = try LockedFile.acquire("a", in: directory) else { exit(1) }
            try file.write(Array("\(sysProcessID())".utf8))
            guard try LockedFile.isLocked("a", in: directory) else { exit(2) }
            kill(sysProcessID(), SIGKILL)
        }
        #expect(try !LockedFile.isLocked("a", in: directory))
        let contents = try #require(try LockedFile.contents("a", in: directory))
        let owner = try #require(Int32(String(decoding: contents, as: UTF8.self)))
        #expect(owner != sysProcessID())
        let file = try lock("a")
        try file.write([1])
        #expect(try heldContents("a") == [1])
    }

    @Test("of threads that try one lock at the same moment, exactly one gets it")
    func race() throws {
        for round in 0..<200 {
            let (winners, finish) = (Counter(), StartLine(2))
            try onThreads(2) { [directory] _ in
                let attempt = try? LockedFile.acquire("race-\(round % 3)", in: directory)
                if case .locked(let file)? = attempt {
                    winners.increment()
                    finish.wait()
                    if round % 2 == 0 { file.remove() }
                } else {
                    finish.wait()
                }
            }
            #expect(winners.value == 1)
        }
    }

    @Test("while owners remove the file and others open it, no two hold its lock and no owner's file is removed")
    func unlinkRace() throws {
        let (holders, taken, faults) = (Counter(), Counter(), Counter())
        try onThreads(4) { [directory] thread in
            for round in 0..<1000 {
                guard let attempt = try? LockedFile.acquire("a", in: directory) else {
                    faults.increment()
                    continue
                }
                guard case .locked(let file) = attempt else { continue }
                if holders.increment() != 1 || !file.checkCurrent() { faults.increment() }
                taken.increment()
                if (round + thread) % 3 == 0 { sched_yield() }
                if !file.checkCurrent() { faults.increment() }
                holders.increment(by: -1)
                if (round + thread) % 4 != 0 { file.remove() }
            }
        }
        #expect(faults.value == 0)
        #expect(taken.value > 0)
        #expect(try isFree("a"))
    }

    #if PORT_FAULTS
    @Test("each failing system call is reported with its code, and leaves no descriptor open")
    func faults() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            await Pools.start()
            let directory = try TrustedDirectory.open(path: root)
            let faults: [(SystemCall, CInt, PortError.Code)] = [
                (.open, EMFILE, .descriptorLimit), (.open, ENFILE, .descriptorLimit),
                (.open, EACCES, .systemCallFailed),
                (.fstat, EIO, .systemCallFailed), (.fcntl, ENOLCK, .systemCallFailed),
            ]
            expectNoNewDescriptors {
                for (call, code, expected) in faults {
                    let (error, hits) = SystemCallFaults.with([.init(call, .fail(code))]) {
                        portError { () throws(PortError) in _ = try LockedFile.acquire("a", in: directory) }
                    }
                    #expect(hits == 1)
                    #expect(error == PortError(expected, system: SystemError(code), subject: .path(root + "/a")))
                }
            }
            withExtendedLifetime(directory) {}
        }
    }

    @Test("interrupted and short writes still write all; a full disk is reported")
    func writing() throws {
        let file = try lock("a")
        let bytes = (0..<100).map { UInt8($0) }
        let rules: [SystemCallFaults.Rule] = [
            .init(.write, .fail(EINTR), times: 3), .init(.write, .shorten(to: 1), times: 40),
        ]
        let (_, hits) = try SystemCallFaults.with(rules) { try file.write(bytes) }
        #expect(hits == 43)
        #expect(try heldContents("a") == bytes)
        let (error, _) = SystemCallFaults.with([.init(.write, .fail(ENOSPC), skipping: 2)]) {
            portError { () throws(PortError) in try file.write(bytes) }
        }
        #expect(error == PortError(SystemError(ENOSPC), subject: .path(scratch.path("a"))))
    }
    #endif

    /// Locks a file that must be free.
    private func lock(_ name: String) throws -> LockedFile {
        switch try LockedFile.acquire(name, in: directory) {
        case .locked(let file): return file
        case .held: throw UnexpectedlyHeld()
        }
    }

    private func isFree(_ name: String) throws(PortError) -> Bool {
        switch try LockedFile.acquire(name, in: directory) {
        case .locked: true
        case .held: false
        }
    }

    private func heldContents(_ name: String) throws(PortError) -> [UInt8]? {
        switch try LockedFile.acquire(name, in: directory) {
        case .locked: nil
        case .held(let contents): contents
        }
    }

    private func expectRefusal(
        _ reason: PortError.StaticReason, of name: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let expected = PortError(.directoryUntrusted, subject: .path(scratch.path(name), reason))
        let errors = [
            portError { () throws(PortError) in _ = try LockedFile.acquire(name, in: directory) },
            portError { () throws(PortError) in _ = try LockedFile.isLocked(name, in: directory) },
            portError { () throws(PortError) in _ = try LockedFile.contents(name, in: directory) },
        ]
        for error in errors { #expect(error == expected, sourceLocation: location) }
    }
}

private struct UnexpectedlyHeld: Error {}
