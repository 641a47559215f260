// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which kind of lock the files of a directory have. All processes take the same kind, for two kinds do not see each other. The
// first process that needs one decides, by what its system has, and writes it down as the target of a symbolic link `locks` in
// the topmost directory: a link is made in one step, with its contents, by one process alone. In a shared directory nobody decides:
// whoever may read a file there could hold a lock of the whole file.

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
    /// Why a lock could not be taken or asked about: the system has begun to refuse this kind; nil for other errors.
    func refusal(_ error: SystemError) -> PortError.StaticReason? {
        self == .openFile && error.isRefusal ? .otherLocks : nil
    }
}

extension TrustedDirectory {
    /// The name of the link, in the topmost directory.
    package static let lockRecord = "locks"

    /// Which kind of lock the files here, and in the directories above and below, have.
    ///
    /// - Parameter decides: whether it is decided now, where nobody has done that: by whoever takes a lock. Whoever only
    ///   asks about one writes nothing; no lock is taken then.
    /// - Returns: the kind.
    /// - Throws: `systemCallFailed` when it is a kind that the system refuses to this process; `directoryUntrusted` when
    ///   what is written down is no kind of lock.
    package func fileLock(decides: Bool) throws(PortError) -> FileLock {
        if let above { return try above.fileLock(decides: decides) }
        if let known = known(knownLock.load(ordering: .relaxed)) { return known }
        let (record, isWritten, hasOpenFileLocks): (String, Bool, Bool)
        do throws(SystemError) {
            hasOpenFileLocks = try sysHasOpenFileLocks(raw)
            (record, isWritten) =
                sharing.isShared
                ? (FileLock.openFile.rawValue, true)
                : try lockRecord(hasOpenFileLocks ? .openFile : .wholeFile, writes: decides)
        } catch {
            throw PortError(error, subject: .path(path))
        }
        guard let kind = FileLock(rawValue: record) else {
            throw PortError(.directoryUntrusted, subject: .path(path, .unknownLocks))
        }
        if kind == .openFile && !hasOpenFileLocks {
            throw PortError(
                .systemCallFailed, system: Refusals.openFileLocks.error,
                subject: .path(path, sharing.isShared ? .sharedLocks : .otherLocks))
        }
        if isWritten { knownLock.store(kind == .openFile ? 1 : 2, ordering: .relaxed) }
        return kind
    }

    private func known(_ number: UInt8) -> FileLock? {
        switch number {
        case 1: .openFile
        case 2: .wholeFile
        default: nil
        }
    }

    /// What is written down; else this process's choice.
    private func lockRecord(_ choice: FileLock, writes: Bool) throws(SystemError) -> (String, isWritten: Bool) {
        // Somebody may take it away between the two steps.
        for _ in 0..<16 {
            if let record = try sysReadLink(Self.lockRecord, in: raw) { return (record, true) }
            if !writes { return (choice.rawValue, false) }
            do throws(SystemError) {
                try sysMakeLink(Self.lockRecord, to: choice.rawValue, in: raw)
                return (choice.rawValue, true)
            } catch {
                switch error.code {
                case EEXIST: continue
                // Nobody takes a lock where no file can be made; those that are there may be read.
                case EROFS, EACCES, ENOENT: return (choice.rawValue, false)
                default: throw error
                }
            }
        }
        return ("", false)
    }
}
