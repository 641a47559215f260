// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import TestSupport
import Testing

/// Which kind of lock the files of a directory have.
@Suite("The locks of a directory", .leakCheck) struct AddressesFileLockTests {
    let scratch: AddressScratch

    init() throws {
        scratch = try AddressScratch()
    }

    private func open() throws -> TrustedDirectory { try TrustedDirectory.open(path: scratch.path) }

    private var record: String? { try? sysReadLink(scratch.path(TrustedDirectory.lockRecord)) }

    @Test("the first process that locks decides, and records it in the directory above; a query writes nothing")
    func decision() throws {
        let top = try open()
        let names = try top.subdirectory("names")
        #expect(try names.fileLock(decides: false) == .openFile)
        #expect(record == nil)
        #expect(try names.fileLock(decides: true) == .openFile)
        #expect(record == "open-file-description")
        #expect(try sysList(scratch.path("names")) == [])
    }

    @Test("a process that has open-file-description locks uses the others where that was decided")
    func honoured() throws {
        try sysMakeLink(scratch.path("locks"), to: "flock", in: AT_FDCWD)
        let (one, other) = (try open(), try open())
        #expect(try one.fileLock(decides: true) == .wholeFile)
        guard case .locked(let file) = try LockedFile.acquire("a", in: one) else { return #expect(Bool(false)) }
        #expect(try LockedFile.isLocked("a", in: other))
        let plain = try sysOpen(scratch.path("a"), .reading)
        #expect(try sysIsLocked(plain.raw, .wholeFile))
        #expect(try !sysIsLocked(plain.raw, .openFile))
        file.remove()
    }

    @Test("a lock that is tried once does not wait while others hold it shared")
    func once() throws {
        try sysMakeLink(scratch.path("locks"), to: "flock", in: AT_FDCWD)
        let directory = try open()
        close(creat(scratch.path("a"), 0o600))
        let reader = try sysOpen(scratch.path("a"), .reading)
        #expect(flock(reader.raw, LOCK_SH | LOCK_NB) == 0)
        #if PORT_FAULTS
        let (_, calls) = try SystemCallFaults.counting {
            guard case .held = try LockedFile.acquire("a", in: directory, within: .zero) else {
                return #expect(Bool(false))
            }
        }
        #expect(calls[.flock] == 1)
        #endif
        #expect(flock(reader.raw, LOCK_UN) == 0)
        guard case .locked(let file) = try LockedFile.acquire("a", in: directory, within: .zero) else {
            return #expect(Bool(false))
        }
        file.remove()
    }

    @Test("threads that lock at the same time all use the same kind", arguments: 0..<20)
    func race(round: Int) throws {
        let kinds = Recorder<FileLock>("a kind")
        let scratch = scratch
        try onThreads(4) { _ in
            guard let kind = try? TrustedDirectory.open(path: scratch.path).fileLock(decides: true) else { return }
            kinds.append(kind)
        }
        #expect(kinds.elements == [.openFile, .openFile, .openFile, .openFile])
        #expect(record == "open-file-description")
    }

    @Test("a record that names no kind of lock makes the directory untrusted, be it a link or a file")
    func unknown() throws {
        try sysMakeLink(scratch.path("locks"), to: "something", in: AT_FDCWD)
        #expect(throws: PortError.self) { try open().fileLock(decides: false) }
        try sysUnlink(scratch.path("locks"), in: AT_FDCWD)
        try scratch.makeFile("locks")
        do throws(PortError) {
            _ = try TrustedDirectory.open(path: scratch.path).fileLock(decides: true)
            Issue.record("It was taken.")
        } catch {
            #expect(error.code == .directoryUntrusted)
        }
    }

    #if PORT_FAULTS
    @Test(
        "where open-file-description locks are refused, other locks are chosen, and they hold",
        arguments: [EINVAL, EPERM, ENOSYS])
    func refused(code: CInt) throws {
        try Refusals.forgetting {
            let rule = SystemCallFaults.Rule(.fcntl, .fail(code), times: .max)
            let (_, calls) = try SystemCallFaults.counting(with: [rule]) {
                let top = try open()
                guard case .locked(let file) = try LockedFile.acquire("a", in: top) else { return #expect(Bool(false)) }
                guard case .held = try LockedFile.acquire("a", in: open()) else { return #expect(Bool(false)) }
                #expect(try LockedFile.isLocked("a", in: open()))
                file.remove()
                #expect(try !LockedFile.isLocked("a", in: top))
            }
            #expect(record == "flock")
            #expect(calls[.fcntl] == 2, "asked once, of this file and of another")
        }
        #expect(try open().fileLock(decides: true) == .wholeFile)
    }

    @Test("where files may have locks already and no record says which, no process uses others")
    func inUse() throws {
        for part in ["names", "sockets"] {
            #expect(mkdir(scratch.path(part), 0o700) == 0)
            try scratch.makeFile(part + "/file")
            Refusals.forgetting {
                _ = SystemCallFaults.with([.init(.fcntl, .fail(EINVAL), times: .max)]) {
                    let error = portError { () throws(PortError) in
                        _ = try TrustedDirectory.open(path: scratch.path).fileLock(decides: true)
                    }
                    #expect(error?.code == .systemCallFailed)
                }
            }
            #expect(record == nil)
            #expect(unlink(scratch.path(part + "/file")) == 0 && rmdir(scratch.path(part)) == 0)
        }
    }

    @Test("a choice that another process records between the two checks is followed")
    func decidedMeanwhile() throws {
        #expect(mkdir(scratch.path("names"), 0o700) == 0)
        try scratch.makeFile("names/file")
        let link = scratch.path("locks")
        try Refusals.forgetting {
            let rules: [SystemCallFaults.Rule] = [
                .init(.fcntl, .fail(EINVAL), times: .max),
                .init(.readdir, .precede { try? sysMakeLink(link, to: "flock", in: AT_FDCWD) }),
            ]
            let (kind, _) = try SystemCallFaults.with(rules) { try open().fileLock(decides: true) }
            #expect(kind == .wholeFile)
        }
        #expect(unlink(scratch.path("names/file")) == 0 && rmdir(scratch.path("names")) == 0)
    }

    @Test("where no link can be made, open-file-description locks are used, and no others", arguments: [EPERM, EROFS])
    func noLink(code: CInt) throws {
        let rule = SystemCallFaults.Rule(.symlink, .fail(code), times: .max)
        let (kind, _) = try SystemCallFaults.with([rule]) { try open().fileLock(decides: true) }
        #expect(kind == .openFile)
        Refusals.forgetting {
            _ = SystemCallFaults.with([rule, .init(.fcntl, .fail(EINVAL), times: .max)]) {
                let error = portError { () throws(PortError) in
                    _ = try TrustedDirectory.open(path: scratch.path).fileLock(decides: true)
                }
                #expect(error?.systemError == SystemError(code))
            }
        }
    }

    @Test("where others use open-file-description locks, a process that is refused them gets an error that says so")
    func refusedLater() throws {
        #expect(try open().fileLock(decides: true) == .openFile)
        Refusals.forgetting {
            _ = SystemCallFaults.with([.init(.fcntl, .fail(EINVAL), times: 2)]) {
                do throws(PortError) {
                    _ = try LockedFile.acquire("a", in: TrustedDirectory.open(path: scratch.path))
                    Issue.record("It was taken.")
                } catch {
                    #expect(error.code == .systemCallFailed)
                    #expect(error.systemError == SystemError(EINVAL))
                    #expect(error.description.contains("take open-file-description locks, which this system refuses"))
                }
            }
        }
    }
    #endif
}
