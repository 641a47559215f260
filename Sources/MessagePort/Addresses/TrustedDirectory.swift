// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import Synchronization

// An open directory that belongs to this user alone, or that is shared by consent. The open directory is verified, not
// its path, so it cannot be replaced between the check and the use; everything in it is then reached through its
// descriptor. The directories above it are not verified: they must not let others rename or remove what belongs to this
// user (a sticky /tmp does not).

/// A directory that belongs to this process's user, is closed to all others, and is open here; or, where the program
/// asks for that, one that its owner shares with a group.
package final class TrustedDirectory: Sendable {
    /// The absolute path by which it was opened.
    package let path: String  // immutable
    private let descriptor: FileDescriptor  // immutable
    private let status: FileStatus  // immutable
    /// Whether it may be a directory that its owner shares with a group.
    private let mayBeShared: Bool  // immutable
    /// The sharing of the directory in which it was opened; nil for the topmost one.
    private let above: DirectorySharing?  // immutable
    /// Which users share it.
    package let sharing: DirectorySharing  // immutable
    /// What `fileLock()` has found: 1 for locks of open files, 2 for those of whole files.
    let knownLock = Atomic<UInt8>(0)

    /// The descriptor's number, valid as long as this object lives: keep the object in a variable while you use it.
    package var raw: CInt { descriptor.raw }

    private init(
        path: String, _ descriptor: consuming FileDescriptor, _ status: FileStatus, mayBeShared: Bool,
        in above: DirectorySharing?
    ) {
        self.path = path
        self.above = above
        self.descriptor = descriptor
        self.status = status
        self.mayBeShared = mayBeShared
        sharing = mayBeShared ? DirectorySharing(status) : .none
    }

    /// Opens a directory, and makes it with mode 0700 when it is not there. Its parent is not made.
    ///
    /// - Parameters:
    ///   - path: an absolute path; slashes at its end, double ones, and components that are `.` are ignored.
    ///   - makes: whether it is made; otherwise one that is not there is `systemCallFailed` with ENOENT.
    ///   - mayBeShared: whether it may be a directory that its owner shares with a group.
    /// - Returns: the open, verified directory.
    /// - Throws: `directoryUntrusted` when it is a symbolic link, is no directory, belongs to another user or is open
    ///   to others without being a permitted shared one, or when the path is not absolute, has a component `..`, or
    ///   holds a NUL; `descriptorLimit`; `systemCallFailed` for the rest.
    package static func open(
        path: String, makes: Bool = true, mayBeShared: Bool = false
    ) throws(PortError) -> TrustedDirectory {
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw PortError(.directoryUntrusted, subject: .path(path, .notAbsolute))
        }
        // The kernel would read the path up to there, and use or make another directory.
        guard !path.utf8.contains(0) else { throw PortError(.directoryUntrusted, subject: .path(path, .hasNUL)) }
        let components = path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        // The addresses of ports begin with it, and a port has one address.
        guard !components.contains("..") else { throw PortError(.directoryUntrusted, subject: .path(path, .leadsUp)) }
        // A slash at the end would also make the kernel follow a symbolic link.
        let plain = "/" + components.filter { $0 != "." }.joined(separator: "/")
        return try open(plain, in: nil, path: plain, makes: makes, mayBeShared: mayBeShared)
    }

    /// Opens a directory in this one, and makes it when it is not there. In a shared directory only the owner and root
    /// make one, and it is shared in the same way.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - makes: whether it is made.
    /// - Returns: the open, verified directory.
    /// - Throws: as ``open(path:makes:mayBeShared:)`` does.
    package func subdirectory(_ name: String, makes: Bool = true) throws(PortError) -> TrustedDirectory {
        let path = path + "/" + name
        let mayMake = makes && (!sharing.isShared || sharing.isAdministered(by: sysUserID()))
        do throws(PortError) {
            return try Self.open(name, in: self, path: path, makes: mayMake, mayBeShared: sharing.isShared)
        } catch {
            guard makes, !mayMake, error.systemError?.code == ENOENT else { throw error }
            throw PortError(.directoryUntrusted, system: error.systemError, subject: .path(path, .notMadeByOwner))
        }
    }

    /// Whether a path leads to this open directory.
    func isAlso(at path: String) -> Bool {
        ((try? sysStatus(atPath: path)) ?? nil)?.isSameFile(as: status) ?? false
    }

    private var parent: DirectorySharing { above ?? .none }

    /// Whether it was opened by its path, and not in another one.
    var isTop: Bool { above == nil }

    /// The sharing of the shared directory to which this one belongs; says which users control it.
    package var keepers: DirectorySharing { parent.isShared ? parent : sharing }

    /// The path of a sibling of this directory.
    package func pathBeside(_ name: String) -> String { (SocketPath.split(path)?.directory ?? "") + "/" + name }

    /// The contents of a file beside this directory that the shared directory's owner or root has written. A file of
    /// another user is ignored.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - limit: the most bytes.
    /// - Returns: nil when there is none.
    /// - Throws: `directoryUntrusted` when others may write to it, it is too large, or no regular file;
    ///   `descriptorLimit`, `systemCallFailed`.
    package func keepersFile(_ name: String, limit: Int) throws(PortError) -> [UInt8]? {
        let path = pathBeside(name)
        let reason: PortError.StaticReason
        do throws(SystemError) {
            guard let there = try sysStatus("../" + name, in: raw), keepers.isAdministered(by: there.owner) else {
                return nil
            }
            guard there.isRegular else { throw SystemError(EINVAL) }
            let file = try sysOpen("../" + name, in: raw, .reading)
            let status = try sysStatus(file.raw)
            if status.isRegular, keepers.isAdministered(by: status.owner), status.permissions & 0o022 == 0 {
                let contents = try sysReadAll(file.raw, limit: limit + 1)
                if contents.count <= limit { return contents }
                reason = .tooLong
            } else {
                reason = status.permissions & 0o022 != 0 ? .groupMayWrite : .notRegularFile
            }
        } catch {
            if error.code == ENOENT { return nil }
            throw error.code == EINVAL || error.code == ELOOP
                ? PortError(.directoryUntrusted, subject: .path(path, .notRegularFile))
                : PortError(error, subject: .path(path))
        }
        throw PortError(.directoryUntrusted, subject: .path(path, reason))
    }

    /// Whether the path still leads to this directory, and it is still closed to others, or shared as it was.
    package func checkCurrent() -> Bool {
        guard let now = try? sysStatus(path, in: AT_FDCWD), now.isSameFile(as: status) else { return false }
        if Self.refusal(of: now, mayBeShared, parent) != nil { return false }
        return !mayBeShared || DirectorySharing(now) == sharing
    }

    /// Why a directory with this status is not trusted; nil when it is. A directory in a shared one must be shared
    /// itself.
    private static func refusal(
        of status: FileStatus, _ mayBeShared: Bool, _ parent: DirectorySharing
    ) -> PortError.StaticReason? {
        guard let refusal = status.directoryRefusal() else {
            return parent.isShared ? status.sharingRefusal(in: parent) : nil
        }
        // A shared one belongs to another user, or is open to some others.
        let isOfOthers = refusal == .otherOwner || refusal == .openToOthers
        return mayBeShared && isOfOthers ? status.sharingRefusal(in: parent) : refusal
    }

    private static func open(
        _ name: String, in above: TrustedDirectory?, path: String, makes: Bool, mayBeShared: Bool
    ) throws(PortError) -> TrustedDirectory {
        let (directory, parent) = (above?.raw ?? AT_FDCWD, above?.sharing ?? .none)
        let status: FileStatus?
        do throws(SystemError) {
            let descriptor = try openOrMake(name, in: directory, path: makes ? path : nil)
            var opened = try sysStatus(descriptor.raw)
            if makes, case .group(_, let group, let permissions) = parent, !opened.isOpenToOthers,
                sysIsOwnUser(opened.owner)
            {
                // Made just now, or by a process that ended before it got here.
                try sysShare(descriptor.raw, with: group, permissions)
                opened = try sysStatus(descriptor.raw)
            }
            if refusal(of: opened, mayBeShared, parent) == nil {
                return TrustedDirectory(path: path, descriptor, opened, mayBeShared: mayBeShared, in: above?.sharing)
            }
            status = opened
        } catch {
            // The kernel refuses to open a link, a file, or another user's directory: report which it is.
            status = (try? sysStatus(name, in: directory)) ?? nil
            guard status.flatMap({ refusal(of: $0, mayBeShared, parent) }) != nil else {
                throw PortError(error, subject: .path(path))
            }
        }
        throw PortError(
            .directoryUntrusted, subject: .path(path, status.flatMap { refusal(of: $0, mayBeShared, parent) }))
    }

    private static func openOrMake(_ name: String, in parent: CInt, path: String?) throws(SystemError) -> FileDescriptor
    {
        do throws(SystemError) {
            return try sysOpen(name, in: parent, .directory)
        } catch {
            guard error.code == ENOENT, let path else { throw error }
            // Another process may make it at this moment; then its directory serves as well, and is verified like ours.
            _ = try sysMakeDirectory(path)
            return try sysOpen(name, in: parent, .directory)
        }
    }
}

// MARK: - Locks

// Which kind of lock the files of a directory have. All processes use the same kind, for two kinds do not see each
// other. The first process that needs one chooses, by what its system has, and records the choice as the target of a
// symbolic link `locks` in the topmost directory: a link is made atomically, with its contents, by exactly one process.
// A shared directory leaves no choice: any process that may read a file there could hold a lock of the whole file.
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

extension PortError.StaticReason {
    package static let notAbsolute = Self("it is not an absolute path")
    package static let leadsUp = Self("a component of it is `..`")
    package static let hasNUL = Self("it contains a NUL byte")
    package static let symbolicLink = Self("it is a symbolic link")
    package static let notDirectory = Self("it is not a directory")
    package static let notRegularFile = Self("it is not a regular file")
    package static let otherOwner = Self("it belongs to another user")
    package static let openToOthers = Self("it is open to other users")
}

extension FileStatus {
    /// Why a directory with this status is not trusted; nil when it is.
    func directoryRefusal() -> PortError.StaticReason? {
        if isSymbolicLink { return .symbolicLink }
        if !isDirectory { return .notDirectory }
        if !sysIsOwnUser(owner) { return .otherOwner }
        return isOpenToOthers ? .openToOthers : nil
    }

    /// Why a file with this status in a trusted directory is not trusted; nil when it is. In a shared one it may belong
    /// to another user, unless it has to be this user's own, if only that user can write to it.
    func fileRefusal(in sharing: DirectorySharing, isOwn: Bool) -> PortError.StaticReason? {
        if isSymbolicLink { return .symbolicLink }
        if !isRegular { return .notRegularFile }
        if isOwn || !sharing.isShared, !sysIsOwnUser(owner) { return .otherOwner }
        if !sharing.isShared { return isOpenToOthers ? .openToOthers : nil }
        if !sysStandsForOneUser(owner) { return .unknownOwner }
        if permissions & 0o007 != 0 { return .openToOthers }
        return permissions & 0o020 != 0 ? .groupMayWrite : nil
    }

    private var isSymbolicLink: Bool { mode & S_IFMT == S_IFLNK }
}
