// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Files", .leakCheck) struct FilesTests {
    @Test("a file is made for its owner alone, close-on-exec, and read again")
    func createAndRead() throws {
        try withScratchDirectory { scratch in
            let directory = try sysOpen(scratch.path, .directory)
            let file = try sysOpen("file", in: directory.raw, .creating)
            try sysWriteAll(file.raw, Array("text".utf8))
            #expect(isCloseOnExec(directory.raw))
            #expect(isCloseOnExec(file.raw))
            let status = try sysStatus(file.raw)
            #expect(status.isRegular && !status.isDirectory && !status.isOpenToOthers)
            #expect(status.owner == geteuid())
            let reading = try sysOpen("file", in: directory.raw, .reading)
            #expect(try sysReadAll(reading.raw) == Array("text".utf8))
            #expect(try sysStatus(reading.raw).isSameFile(as: status))
            #expect(try !sysStatus(directory.raw).isSameFile(as: status))
        }
    }

    @Test("opening to create keeps the contents")
    func createKeeps() throws {
        try withScratchDirectory { scratch in
            try scratch.write("kept", to: "file")
            let file = try sysOpen(scratch.path("file"), .creating)
            #expect(try sysReadAll(file.raw) == Array("kept".utf8))
        }
    }

    @Test("symbolic links are refused", arguments: [OpenMode.reading, .creating, .directory])
    func links(mode: OpenMode) throws {
        try withScratchDirectory { scratch in
            try scratch.write("", to: "file")
            #expect(try sysMakeDirectory(scratch.path("directory")))
            let isDirectory = if case .directory = mode { true } else { false }
            #expect(symlink(isDirectory ? "directory" : "file", scratch.path("link")) == 0)
            #expect(throws: SystemError(isDirectory ? ENOTDIR : ELOOP)) { _ = try sysOpen(scratch.path("link"), mode) }
            let directory = try sysOpen(scratch.path, .directory)
            let status = try #require(try sysStatus("link", in: directory.raw))
            #expect(!status.isRegular && !status.isDirectory)
        }
    }

    @Test("opening a FIFO without a writer does not block")
    func fifo() throws {
        try withScratchDirectory { scratch in
            #expect(mkfifo(scratch.path("fifo"), 0o600) == 0)
            let fifo = try sysOpen(scratch.path("fifo"), .reading)
            #expect(try !sysStatus(fifo.raw).isRegular)
        }
    }

    @Test("a name that does not exist has no status, and cannot be opened")
    func missing() throws {
        try withScratchDirectory(leaving: .none) { scratch in
            let directory = try sysOpen(scratch.path, .directory)
            #expect(try sysStatus("missing", in: directory.raw) == nil)
            #expect(throws: SystemError(ENOENT)) { _ = try sysOpen(scratch.path("missing"), .reading) }
            #expect(throws: SystemError(ENOENT)) { try sysList(scratch.path("missing")) }
            #expect(throws: SystemError(ENOENT)) { try sysRename("missing", to: "other", in: directory.raw) }
            try sysUnlink("missing", in: directory.raw)
        }
    }

    @Test("a file is no directory")
    func notADirectory() throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("", to: "file")
            #expect(throws: SystemError(ENOTDIR)) { _ = try sysOpen(path, .directory) }
            #expect(throws: SystemError(ENOTDIR)) { try sysList(path) }
        }
    }

    @Test("a directory is made once, for its owner alone")
    func makeDirectory() throws {
        try withScratchDirectory { scratch in
            #expect(try sysMakeDirectory(scratch.path("inner")))
            #expect(try !sysMakeDirectory(scratch.path("inner")))
            let inner = try sysOpen(scratch.path("inner"), .directory)
            let status = try sysStatus(inner.raw)
            #expect(status.isDirectory && !status.isOpenToOthers)
            #expect(throws: SystemError(ENOENT)) { try sysMakeDirectory(scratch.path("missing/inner")) }
        }
    }

    @Test("a directory that others may search is distinguished from a private one")
    func openToOthers() throws {
        try withScratchDirectory { scratch in
            #expect(chmod(scratch.path, 0o710) == 0)
            let directory = try sysOpen(scratch.path, .directory)
            #expect(try sysStatus(directory.raw).isOpenToOthers)
        }
    }

    @Test("a list has every name once, hidden ones too, and not the directory itself")
    func list() throws {
        try withScratchDirectory { scratch in
            let names = (0..<500).map { "name \($0)" } + [".hidden", "ünïcode"]
            for name in names { try scratch.write("", to: name) }
            #expect(try sysList(scratch.path).sorted() == names.sorted())
        }
    }

    @Test("a rename never replaces, an unlink removes the name")
    func renameAndUnlink() throws {
        try withScratchDirectory(leaving: .none) { scratch in
            try scratch.write("first", to: "first")
            try scratch.write("second", to: "second")
            let directory = try sysOpen(scratch.path, .directory)
            #expect(throws: SystemError(EEXIST)) { try sysRename("first", to: "second", in: directory.raw) }
            try sysRename("first", to: "third", in: directory.raw)
            #expect(try scratch.names() == ["second", "third"])
            try sysUnlink("second", in: directory.raw)
            try sysUnlink("third", in: directory.raw)
        }
    }

    @Test("a rename that the system refuses replaces nothing either", arguments: [ENOSYS, EINVAL, EOPNOTSUPP, EPERM])
    func refusedRename(code: CInt) throws {
        try withScratchDirectory(leaving: .none) { scratch in
            try scratch.write("first", to: "first")
            try scratch.write("second", to: "second")
            let directory = try sysOpen(scratch.path, .directory)
            let refused = SystemCallFaults.Rule(.rename, .fail(code), times: 3)
            _ = try SystemCallFaults.with([refused]) {
                #expect(throws: SystemError(EEXIST)) { try sysRename("first", to: "second", in: directory.raw) }
                #expect(throws: SystemError(ENOENT)) { try sysRename("missing", to: "third", in: directory.raw) }
                try sysRename("first", to: "third", in: directory.raw)
            }
            #expect(try scratch.names() == ["second", "third"])
            // A file that cannot lose its old name does not keep the new one.
            let stuck = SystemCallFaults.Rule(.unlink, .fail(EROFS))
            #expect(throws: SystemError(EROFS)) {
                _ = try SystemCallFaults.with([SystemCallFaults.Rule(.rename, .fail(code)), stuck]) {
                    try sysRename("third", to: "fourth", in: directory.raw)
                }
            }
            #expect(try scratch.names() == ["second", "third"])
            try sysUnlink("second", in: directory.raw)
            try sysUnlink("third", in: directory.raw)
        }
    }

    @Test("a file that was rewound is read again from its beginning")
    func rewind() throws {
        try withScratchDirectory { scratch in
            let file = try sysOpen(scratch.write("text", to: "file"), .reading)
            #expect(try sysReadAll(file.raw) == Array("text".utf8))
            #expect(try sysReadAll(file.raw) == [])
            try sysRewind(file.raw)
            #expect(try sysReadAll(file.raw) == Array("text".utf8))
        }
    }

    @Test("a file is truncated and extended")
    func truncate() throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("abcdef", to: "file")
            let file = try sysOpen(path, .creating)
            try sysTruncate(file.raw, to: 3)
            try sysTruncate(file.raw, to: 5)
            #expect(try sysReadAll(file.raw) == Array("abc\0\0".utf8))
        }
    }
}

@Suite("File locks", .leakCheck) struct FileLockTests {
    @Test(
        "one open file holds the lock, in one process too, until its last descriptor is closed",
        arguments: FileLock.allCases)
    func exclusive(kind: FileLock) throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("", to: "lock")
            let second = try sysOpen(path, .creating)
            var copy: SharedDescriptor?
            do {
                let first = try sysOpen(path, .creating)
                #expect(try sysLock(first.raw, kind))
                #expect(try sysLock(first.raw, kind))
                #expect(try !sysLock(second.raw, kind))
                copy = try SharedDescriptor(duplicating: first.raw)
                _ = consume first
            }
            #expect(copy != nil)
            #expect(try !sysLock(second.raw, kind))
            copy = nil
            #expect(try sysLock(second.raw, kind))
        }
    }

    @Test("asking whether a lock is held has no effect on the lock", arguments: FileLock.allCases)
    func question(kind: FileLock) throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("", to: "lock")
            let holder = try sysOpen(path, .creating)
            do {
                let asker = try sysOpen(path, .reading)
                #expect(try !sysIsLocked(asker.raw, kind))
                #expect(try sysLock(holder.raw, kind))
                #expect(try sysIsLocked(asker.raw, kind))
                // Asked through the holder's own descriptor, a lock of the whole file would be shared from then on.
                if kind == .openFile { #expect(try !sysIsLocked(holder.raw, kind)) }
                _ = consume asker
            }
            let other = try sysOpen(path, .creating)
            #expect(try !sysLock(other.raw, kind))
        }
    }

    @Test(
        "a lock that is released is free at once, though a duplicate of its descriptor is open",
        arguments: FileLock.allCases)
    func unlock(kind: FileLock) throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("", to: "lock")
            let holder = try sysOpen(path, .creating)
            let copy = try holder.duplicate()
            let other = try sysOpen(path, .creating)
            #expect(try sysLock(holder.raw, kind))
            try sysUnlock(holder.raw, kind)
            #expect(try sysLock(other.raw, kind))
            #expect(try !sysLock(copy.raw, kind))
            try sysUnlock(copy.raw, kind)
            #expect(try sysIsLocked(copy.raw, kind))
        }
    }

    @Test("threads that ask about a lock do not keep others from acquiring it", arguments: FileLock.allCases)
    func askers(kind: FileLock) throws {
        try withScratchDirectory { scratch in
            let path = try scratch.write("", to: "lock")
            let isOver = Atomic(false)
            let askers = (0..<2).map { _ in
                runOnThread {
                    let asker = try sysOpen(path, .reading)
                    while !isOver.load(ordering: .acquiring) { _ = try sysIsLocked(asker.raw, kind) }
                }
            }
            let taker = try sysOpen(path, .creating)
            for _ in 0..<2000 {
                #expect(try sysLock(taker.raw, kind))
                try sysUnlock(taker.raw, kind)
            }
            isOver.store(true, ordering: .releasing)
            for asker in askers { try asker.join() }
        }
    }

    @Test("the lock of a killed process is free", arguments: FileLock.allCases)
    func killedHolder(kind: FileLock) async throws {
        try await withScratchDirectory { scratch in
            let path = try scratch.write("", to: "lock")
            let asker = SharedDescriptor(try sysOpen(path, .creating))
            let holder = SharedDescriptor(try sysOpen(path, .creating))
            #expect(try sysLock(holder.rawValue, kind))
            let child = try holdingChild(holder.rawValue)
            try releaseInParent(holder)
            #expect(try sysIsLocked(asker.rawValue, kind))
            child.kill()
            #expect(try await child.waitForExit().end == .signalled(SIGKILL))
            #expect(try !sysIsLocked(asker.rawValue, kind))
        }
    }

    /// A child that keeps the open file of `descriptor`, which it inherits, so it is the same open file.
    private func holdingChild(_ descriptor: CInt) throws -> ChildProcess {
        _ = fcntl(descriptor, F_SETFD, 0)
        defer { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return try ChildProcess("/bin/cat")
    }

    /// Replaces the parent's descriptor with another open file, so that only the child holds the lock.
    private func releaseInParent(_ descriptor: SharedDescriptor) throws {
        let null = try sysOpen("/dev/null", .reading)
        #expect(dup2(null.raw, descriptor.rawValue) == descriptor.rawValue)
    }
}
