// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortCLibrary
import PortSystem

// A file whose existence means nothing and whose lock means everything: the kernel drops the lock when its owner ends,
// however that happens, and a file without a lock belongs to a dead owner: the next owner reuses it.
//
// Only the holder of its lock removes a file. So after it has locked a file a process must check that the path still
// leads to that file: the previous owner may have removed it between the open and the lock. Then another file may be
// there by now, and the next round starts.

/// A file in a trusted directory, exclusively locked while this value lives.
///
/// A value that is deinitialized without `remove()` leaves the file behind, unlocked. In a forked child the lock
/// belongs to both processes, and only the one that acquired it removes the file.
package struct LockedFile: ~Copyable, Sendable {
    private let name: String
    private let directory: TrustedDirectory
    private let descriptor: FileDescriptor
    private let process: Int32
    private let kind: FileLock
    /// Whether another process has the lock, and the file is its own.
    private var hasLeft = false

    package enum LockOutcome: ~Copyable, Sendable {
        /// This process holds the lock.
        case locked(LockedFile)
        /// Another open file holds it; these are the file's contents now. They may be a part of what its owner writes.
        case held(contents: [UInt8])
    }

    /// A file's contents beyond this many bytes are not read.
    package static let readLimit = 16384

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
        if sysProcessID() == process, !hasLeft { try? sysUnlock(descriptor.raw, kind) }
    }

    /// Opens or makes a file and locks it, without waiting; while other processes only query a lock of the whole file,
    /// it tries again until the limit.
    ///
    /// - Returns: the locked file, with the contents that a dead owner left in it; or the contents of the live owner's
    ///   file.
    /// - Throws: `directoryUntrusted` when it is a symbolic link, no regular file, or another user's;
    ///   `descriptorLimit`; `systemCallFailed` for the rest.
    package static func acquire(
        _ name: String, in directory: TrustedDirectory, within limit: Duration = FileLock.limit
    ) throws(PortError) -> LockOutcome {
        try acquire(name, in: directory, within: limit) { (_) throws(PortError) in }
    }

    /// The same; `prepare` is called when the file is open and unlocked. What it opens gets a higher descriptor than the
    /// file: when the process is killed, Linux closes that first, and drops the lock after it.
    ///
    /// - Throws: as ``acquire(_:in:within:)``; what `prepare` throws.
    package static func acquire(
        _ name: String, in directory: TrustedDirectory, preparing prepare: () throws(PortError) -> Void
    ) throws(PortError) -> LockOutcome {
        try acquire(name, in: directory, within: FileLock.limit) { (file) throws(PortError) in
            guard try !isLocked(file, name, in: directory) else { return }
            do throws(PortError) {
                try prepare()
            } catch {
                removeUnlessLocked(file, name, in: directory)
                throw error
            }
        }
    }

    private static func acquire(
        _ name: String, in directory: TrustedDirectory, within limit: Duration,
        opened: (borrowing FileDescriptor) throws(PortError) -> Void
    ) throws(PortError) -> LockOutcome {
        let kind = try directory.fileLock(decides: true)
        var contents: [UInt8] = []
        for _ in 0..<Tuning.lockAttempts {
            let file = try open(name, in: directory, .creating)
            try opened(file)
            do throws(SystemError) {
                let isOurs = try sysLock(file.raw, kind, within: limit)
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
    /// locked, or whose user is `denied`: that user may not have it, and their lock does not count.
    ///
    /// - Returns: whether it was removed.
    package static func removeForeign(_ name: String, in directory: TrustedDirectory, deniedTo denied: uid_t?) -> Bool {
        guard directory.sharing.isShared, directory.keepers.isAdministered(by: sysUserID()) else { return false }
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
                try restore(aside, at: name, in: directory)
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

    /// Replaces the contents by others, which a live process reads meanwhile: at no moment is the file empty.
    ///
    /// - Throws: as ``write(_:)``.
    package func replace(_ contents: [UInt8]) throws(PortError) {
        do throws(SystemError) {
            try sysCheckFileSize(contents.count)
            try sysRewind(descriptor.raw)
            try sysWriteAll(descriptor.raw, contents)
            try sysTruncate(descriptor.raw, to: contents.count)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    /// Another descriptor of the file, with its lock.
    func duplicate() throws(PortError) -> FileDescriptor { try PortError.converting(descriptor.duplicate()) }

    /// What another process needs to have the lock, too.
    package func packed() throws(PortError) -> FileSnapshot {
        FileSnapshot(
            directory: SocketPath.split(directory.path)?.directory ?? "", name: name,
            lock: SharedDescriptor(try duplicate()))
    }

    /// Another process has the lock: this value only closes its descriptor.
    package consuming func leave() { hasLeft = true }

    /// Takes over the lock of a file in a directory of names, which another process has; nil when that does not have it,
    /// the name leads to another file, or the file is not trusted.
    init?(_ packed: FileSnapshot, in directory: TrustedDirectory) throws(PortError) {
        let kind = try directory.fileLock(decides: false)
        let descriptor = packed.lock.rawValue
        // Of a peer's file, which it is until it is known to be the one here, nothing is asked of its file system.
        guard !packed.name.utf8.contains(UInt8(ascii: "/")),
            let there = try PortError.converting(sysStatus(packed.name, in: directory.raw)),
            there.fileRefusal(in: directory.sharing, isOwn: true) == nil,
            try PortError.converting(sysIsOpen(descriptor, on: there)),
            try PortError.converting(sysLock(descriptor, kind, within: .zero))
        else { return nil }
        self.init(name: packed.name, directory: directory, packed.lock.take(), kind)
    }

    /// Whether the name still leads to this file; false after a process without the lock removed it.
    package func checkCurrent() -> Bool { (try? Self.isCurrent(descriptor, name, in: directory)) ?? false }

    /// Empties the file, so that no process reads what a previous owner has left.
    ///
    /// - Throws: `systemCallFailed`.
    package func cut() throws(PortError) {
        try PortError.converting(sysTruncate(descriptor.raw, to: 0), about: .path(directory.path + "/" + name))
    }

    /// Whether the file can be found where it was made, in a directory that is still trusted.
    package func checkReachable() -> Bool { directory.checkCurrent() && checkCurrent() }

    /// Empties and removes the file, then unlocks it. If the kernel refuses to remove it, it stays behind, empty, as a
    /// dead owner's.
    package consuming func remove() {
        guard sysProcessID() == process, checkCurrent() else { return }
        try? sysTruncate(descriptor.raw, to: 0)
        try? sysUnlink(name, in: directory.raw)
    }
}

// MARK: - Reading

extension LockedFile {
    /// Whether a file's lock is held; false when there is no such file. Does not disturb the holder.
    ///
    /// - Throws: as ``acquire(_:in:within:)``.
    package static func isLocked(_ name: String, in directory: TrustedDirectory) throws(PortError) -> Bool {
        guard let file = try openExisting(name, in: directory) else { return false }
        return try isLocked(file, name, in: directory)
    }

    static func isLocked(_ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory)
        throws(PortError) -> Bool
    {
        let kind = try directory.fileLock(decides: false)
        do throws(SystemError) {
            return try sysIsLocked(file.raw, kind)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name, kind.refusal(error)))
        }
    }

    /// A file's contents, at most `readLimit` bytes; nil when there is no such file. They may be a part of what its
    /// owner writes.
    ///
    /// - Throws: as ``acquire(_:in:within:)``.
    package static func contents(_ name: String, in directory: TrustedDirectory) throws(PortError) -> [UInt8]? {
        try signedContents(name, in: directory)?.contents
    }

    /// The same, and the user that owns the file: no other user can have written them.
    package static func signedContents(
        _ name: String, in directory: TrustedDirectory
    ) throws(PortError) -> (contents: [UInt8], user: uid_t)? {
        guard let file = try openExisting(name, in: directory) else { return nil }
        return try PortError.converting(
            (read(file), sysStatus(file.raw).owner), about: .path(directory.path + "/" + name))
    }

    private static func openExisting(_ name: String, in directory: TrustedDirectory) throws(PortError)
        -> FileDescriptor?
    {
        try PortError.unlessMissing { () throws(PortError) in try open(name, in: directory, .reading) }
    }

    /// Opens a file and verifies what was opened.
    static func open(_ name: String, in directory: TrustedDirectory, _ mode: OpenMode) throws(PortError)
        -> FileDescriptor
    {
        let path = directory.path + "/" + name
        let isOwn = mode == .creating
        let status: FileStatus?
        do throws(SystemError) {
            let file = try sysOpen(name, in: directory.raw, mode)
            let opened = try sysStatus(file.raw)
            if opened.fileRefusal(in: directory.sharing, isOwn: isOwn) == nil {
                if isOwn, case .group(_, let group, _) = directory.sharing {
                    try sysShare(file.raw, with: group, 0o640)
                }
                return file
            }
            status = opened
        } catch {
            // The kernel refuses to open a link, a directory, a socket, or another user's file: report which it is.
            status = (try? sysStatus(name, in: directory.raw)) ?? nil
            guard status?.fileRefusal(in: directory.sharing, isOwn: isOwn) != nil else {
                throw PortError(error, subject: .path(path))
            }
        }
        throw PortError(
            .directoryUntrusted, subject: .path(path, status?.fileRefusal(in: directory.sharing, isOwn: isOwn)))
    }

    /// Moves a file of this user out of the way when a process that may only read it holds a read lock, which would
    /// keep the owner from locking the file for as long as that process likes. Another process of the user may have put
    /// its own file there meanwhile: that one is moved back.
    static func evictReader(
        _ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory, _ kind: FileLock
    ) throws(SystemError) {
        guard directory.sharing.isShared, try !sysIsLocked(file.raw, kind), try isCurrent(file, name, in: directory)
        else { return }
        let aside = asideName()
        try sysRename(name, to: aside, in: directory.raw)
        if try isCurrent(file, aside, in: directory) {
            try sysUnlink(aside, in: directory.raw)
        } else {
            try restore(aside, at: name, in: directory)
        }
    }

    /// The name of a file that is moved aside for a moment: no port and no process has such a name.
    static func asideName() -> String { asidePrefix + EndpointFileName.makeID() }

    package static let asidePrefix = ".aside-"

    /// Moves a file that was moved aside back to its name. When there is another one by now, that one has the name, and
    /// the moved one is removed.
    static func restore(_ aside: String, at name: String, in directory: TrustedDirectory) throws(SystemError) {
        do throws(SystemError) {
            try sysRename(aside, to: name, in: directory.raw)
        } catch {
            // Where the system cannot rename without replacing, it is moved back either way.
            if error.code != EEXIST { return try sysMove(aside, to: name, in: directory.raw) }
            try sysUnlink(aside, in: directory.raw)
        }
    }

    static func read(_ file: borrowing FileDescriptor) throws(SystemError) -> [UInt8] {
        var contents: [UInt8] = []
        while contents.count < readLimit {
            let wanted = min(4096, readLimit - contents.count)
            guard let piece = try sysRead(file.raw, capacity: wanted), !piece.isEmpty else { break }
            contents += piece
        }
        return contents
    }

    static func isCurrent(_ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory)
        throws(SystemError) -> Bool
    {
        guard let there = try sysStatus(name, in: directory.raw) else { return false }
        return there.isSameFile(as: try sysStatus(file.raw))
    }
}

/// A locked file on its way to another process.
package struct FileSnapshot: Sendable {
    /// The directory of ports.
    let directory: String
    /// Its name in the part of that for names.
    let name: String
    /// The open file, to which the lock belongs.
    let lock: SharedDescriptor
}
