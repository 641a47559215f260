// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortCLibrary
import PortSystem

extension LockedFile {
    /// Whether a file's lock is held; false when there is no such file. Does not disturb the holder.
    ///
    /// - Throws: as ``take(_:in:)`` does.
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
    /// - Throws: as ``take(_:in:)`` does.
    package static func contents(_ name: String, in directory: TrustedDirectory) throws(PortError) -> [UInt8]? {
        try signedContents(name, in: directory)?.contents
    }

    /// The same, and the user that owns the file: no other user can have written them.
    package static func signedContents(
        _ name: String, in directory: TrustedDirectory
    ) throws(PortError) -> (contents: [UInt8], user: uid_t)? {
        guard let file = try openExisting(name, in: directory) else { return nil }
        do throws(SystemError) {
            return (try read(file), try sysStatus(file.raw).owner)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    private static func openExisting(_ name: String, in directory: TrustedDirectory) throws(PortError)
        -> FileDescriptor?
    {
        do throws(PortError) {
            return try open(name, in: directory, .reading)
        } catch {
            if error.systemError?.code == ENOENT { return nil }
            throw error
        }
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
            try putBack(aside, at: name, in: directory)
        }
    }

    /// The name of a file that is moved aside for a moment: no port and no process has such a name.
    static func asideName() -> String { asidePrefix + EndpointFileName.makeID() }

    /// What such a name begins with.
    package static let asidePrefix = ".aside-"

    /// Moves a file that was moved aside back to its name. When there is another one by now, that one has the name, and
    /// the moved one is removed.
    static func putBack(_ aside: String, at name: String, in directory: TrustedDirectory) throws(SystemError) {
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
