// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which kind of lock the files of a directory have. All processes use the same kind, for two kinds do not see each
// other. The first process that needs one chooses, by what its system has, and records the choice as the target of a
// symbolic link `locks` in the topmost directory: a link is made atomically, with its contents, by exactly one process.
// A shared directory leaves no choice: any process that may read a file there could hold a lock of the whole file.

import PortCLibrary
import PortSystem
import Synchronization

extension PortError.StaticReason {
    static let otherLocks = Self(
        """
        its processes take open-file-description locks, which this system refuses to this one: allow them, or end all its \
        processes and remove it
        """)
    static let sharedLocks = Self(
        """
        it is shared, so its processes need open-file-description locks, which this system refuses: allow them, or use a \
        directory of one user
        """)
    static let unknownLocks = Self("its link `locks` names no kind of lock that this version knows")
}

extension FileLock {
    /// Why locking or querying a lock failed: the system has begun to refuse this kind; nil for other errors.
    func refusal(_ error: SystemError) -> PortError.StaticReason? {
        self == .openFile && Refusals.openFileLocks.error == error ? .otherLocks : nil
    }
}

extension TrustedDirectory {
    /// The name of the link, in the topmost directory.
    package static let lockRecord = "locks"

    /// Which kind of lock the files here, and in the directories above and below, have.
    ///
    /// - Parameter decides: whether to record a choice where there is none yet: true for a process that locks. A
    ///   process that only queries a lock records nothing, and locks nothing.
    /// - Returns: the kind.
    /// - Throws: `systemCallFailed` when it is a kind that the system refuses to this process; `directoryUntrusted`
    ///   when what is recorded is no kind of lock.
    package func fileLock(decides: Bool) throws(PortError) -> FileLock {
        if let known = known(knownLock.load(ordering: .relaxed)) {
            if known == .openFile, let refusal = Refusals.openFileLocks.error { throw cannotLock(refusal) }
            return known
        }
        let (record, isWritten): (String, Bool)
        do throws(SystemError) {
            let choice: FileLock = try sysHasOpenFileLocks(raw) ? .openFile : .wholeFile
            (record, isWritten) =
                sharing.isShared
                ? (FileLock.openFile.rawValue, true) : try lockRecord(choice, writes: decides)
        } catch {
            throw PortError(error, subject: .path(path))
        }
        guard let kind = FileLock(rawValue: record) else {
            throw PortError(.directoryUntrusted, subject: .path(path, .unknownLocks))
        }
        if kind == .openFile, let refusal = Refusals.openFileLocks.error { throw cannotLock(refusal) }
        if isWritten { knownLock.store(kind == .openFile ? 1 : 2, ordering: .relaxed) }
        return kind
    }

    private func cannotLock(_ refusal: SystemError) -> PortError {
        PortError(
            .systemCallFailed, system: refusal, subject: .path(path, sharing.isShared ? .sharedLocks : .otherLocks))
    }

    private func known(_ number: UInt8) -> FileLock? {
        switch number {
        case 1: .openFile
        case 2: .wholeFile
        default: nil
        }
    }

    /// What is recorded; else this process's choice.
    private func lockRecord(_ choice: FileLock, writes: Bool) throws(SystemError) -> (String, isWritten: Bool) {
        let link = isTop ? Self.lockRecord : "../" + Self.lockRecord
        // Another process may remove it between the two steps.
        for _ in 0..<16 {
            if let record = try sysReadLink(link, in: raw) { return (record, true) }
            // A process that does not record its choice uses open-file-description locks.
            if choice == .wholeFile, try isInUse() {
                // Another process may have recorded its choice, and then made files, since the link was read.
                if let record = try sysReadLink(link, in: raw) { return (record, true) }
                return (FileLock.openFile.rawValue, false)
            }
            if !writes { return (choice.rawValue, false) }
            do throws(SystemError) {
                try sysMakeLink(link, to: choice.rawValue, in: raw)
                return (choice.rawValue, true)
            } catch {
                if error.code == EEXIST { continue }
                // A read-only directory, a file system without links: then no process can record another kind.
                if choice == .wholeFile { throw error }
                return (choice.rawValue, false)
            }
        }
        return ("", false)
    }

    /// Whether there are files that may have locks already.
    private func isInUse() throws(SystemError) -> Bool {
        for part in ["names", "sockets"] {
            do throws(SystemError) {
                let directory = try sysOpen(isTop ? part : "../" + part, in: raw, .directory)
                if try !sysList(in: directory.raw).isEmpty { return true }
            } catch {
                if error.code != ENOENT { throw error }
            }
        }
        return false
    }
}
