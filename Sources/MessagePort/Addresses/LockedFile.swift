// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A file whose existence means nothing and whose lock means everything: the kernel drops the lock when its owner ends,
// however that happens, and a file without a lock belongs to a dead owner: the next owner reuses it.
//
// Only the holder of its lock removes a file. So after it has locked a file a process must check that the path still
// leads to that file: the previous owner may have removed it between our open and our lock. Then another file may be
// there by now, and the next round starts.

package import PortCLibrary
import PortSystem

/// A file in a trusted directory, exclusively locked while this value lives.
///
/// A value that goes away without `remove()` leaves the file behind, unlocked. In a forked child the lock belongs to
/// both processes, and only the one that took it removes the file.
package struct LockedFile: ~Copyable, Sendable {
    private let name: String
    private let directory: TrustedDirectory
    private let descriptor: FileDescriptor
    private let process: Int32
    private let kind: FileLock

    /// The outcome of an attempt to lock.
    package enum Attempt: ~Copyable, Sendable {
        /// This process holds the lock.
        case locked(LockedFile)
        /// Another open file holds it; these are the file's contents now. They may be a part of what its owner writes.
        case held(contents: [UInt8])
    }

    /// A file's contents beyond this many bytes are not read.
    package static let readLimit = 16384

    /// Each further round means that another owner removed the file in the previous round.
    private static let roundLimit = 100

    private init(
        name: String, directory: TrustedDirectory, _ descriptor: consuming FileDescriptor, _ kind: FileLock
    ) {
        self.name = name
        self.kind = kind
        self.directory = directory
        self.descriptor = descriptor
        process = sysProcessID()
    }

    deinit {
        // Closing is not enough: a child that another thread is launching has a copy of the descriptor until its exec.
        if sysProcessID() == process { try? sysUnlock(descriptor.raw, kind) }
    }

    /// Opens or makes a file and locks it, without waiting.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - directory: where.
    ///   - patience: how long to try while other processes only query a lock of the whole file.
    /// - Returns: the locked file, with the contents that a dead owner left in it; or the contents of the live owner's
    ///   file.
    /// - Throws: `directoryUntrusted` when it is a symbolic link, no regular file, or another user's;
    ///   `descriptorLimit`; `systemCallFailed` for the rest.
    package static func take(
        _ name: String, in directory: TrustedDirectory, within patience: Duration = FileLock.limit
    ) throws(PortError) -> Attempt {
        try take(name, in: directory, within: patience) { (_) throws(PortError) in }
    }

    /// The same, with a step before the file is locked.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - directory: where.
    ///   - prepare: called when the file is open and unlocked. What it opens gets a higher descriptor than the file:
    ///     when the process is killed, Linux closes that first, and drops the lock after it.
    /// - Returns: as ``take(_:in:)``.
    /// - Throws: as ``take(_:in:)``; what `prepare` throws.
    package static func take(
        _ name: String, in directory: TrustedDirectory, preparing prepare: () throws(PortError) -> Void
    ) throws(PortError) -> Attempt {
        try take(name, in: directory, within: FileLock.limit) { (file) throws(PortError) in
            guard try !isLocked(file, name, in: directory) else { return }
            do throws(PortError) {
                try prepare()
            } catch {
                removeUnlessLocked(file, name, in: directory)
                throw error
            }
        }
    }

    private static func take(
        _ name: String, in directory: TrustedDirectory, within patience: Duration,
        opened: (borrowing FileDescriptor) throws(PortError) -> Void
    ) throws(PortError) -> Attempt {
        let kind = try directory.fileLock(decides: true)
        var contents: [UInt8] = []
        for _ in 0..<roundLimit {
            let file = try open(name, in: directory, .creating)
            try opened(file)
            do throws(SystemError) {
                let isOurs = try sysLock(file.raw, kind, within: patience)
                if !isOurs { contents = try read(file) }
                if !isOurs { try evictReader(file, name, in: directory, kind) }
                if try isCurrent(file, name, in: directory) {
                    if isOurs { return .locked(LockedFile(name: name, directory: directory, file, kind)) }
                    return .held(contents: contents)
                }
            } catch {
                throw PortError(error, subject: .path(directory.path + "/" + name, kind.refusal(error)))
            }
        }
        return .held(contents: contents)
    }

    /// Removes another user's file in a shared directory, for the directory's owner and root: a file that is not
    /// locked, or that its user may not have.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - directory: where.
    ///   - denied: a user that may not have the file, and whose lock does not count; nil when there is none.
    /// - Returns: whether it was removed.
    package static func removeLeftover(_ name: String, in directory: TrustedDirectory, deniedTo denied: uid_t?) -> Bool
    {
        guard directory.sharing.isShared, directory.keepers.isKept(by: sysUserID()) else { return false }
        func isHeld(_ name: String) -> Bool {
            if let denied, ((try? sysStatus(name, in: directory.raw)) ?? nil)?.owner == denied { return false }
            return (try? isLocked(name, in: directory)) != false
        }
        if isHeld(name) { return false }
        // Its user may lock it at any time, and others may put their files there. A process that locks it from now on
        // finds that the name no longer leads to it; for a process that has just locked it, it is moved back.
        let aside = asideName()
        do throws(SystemError) {
            try sysMove(name, to: aside, in: directory.raw)
            if isHeld(aside) {
                try putBack(aside, at: name, in: directory)
                return false
            }
            try sysUnlink(aside, in: directory.raw)
            return true
        } catch {
            return false
        }
    }

    /// Removes a file that may be new and that no process needs.
    private static func removeUnlessLocked(
        _ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory
    ) {
        guard let kind = try? directory.fileLock(decides: true), (try? sysLock(file.raw, kind)) == true else { return }
        if (try? isCurrent(file, name, in: directory)) == true { try? sysUnlink(name, in: directory.raw) }
        try? sysUnlock(file.raw, kind)
    }

    /// Replaces the contents. A reader may see a part of them.
    ///
    /// - Throws: `systemCallFailed`, for example when the disk is full.
    package func write(_ contents: [UInt8]) throws(PortError) {
        do throws(SystemError) {
            try sysCheckFileSize(contents.count)
            try sysTruncate(descriptor.raw, to: 0)
            try sysRewind(descriptor.raw)
            try sysWriteAll(descriptor.raw, contents)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    /// Whether the name still leads to this file; false after a process without the lock removed it.
    package var isCurrent: Bool { (try? Self.isCurrent(descriptor, name, in: directory)) ?? false }

    /// Empties the file, so that no process reads what a previous owner has left.
    ///
    /// - Throws: `systemCallFailed`.
    package func cut() throws(PortError) {
        do throws(SystemError) {
            try sysTruncate(descriptor.raw, to: 0)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    /// Whether the file can be found where it was made, in a directory that is still trusted.
    package var isReachable: Bool { directory.isCurrent && isCurrent }

    /// Empties and removes the file, then unlocks it. If the kernel refuses to remove it, it stays behind, empty, as a
    /// dead owner's.
    package consuming func remove() {
        guard sysProcessID() == process, isCurrent else { return }
        try? sysTruncate(descriptor.raw, to: 0)
        try? sysUnlink(name, in: directory.raw)
    }
}
