// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortCLibrary
import PortSystem
import Synchronization

/// The directory in which a user's ports find each other: `names` holds a file for each registered name, `sockets`
/// the sockets of ports that were sent to another process or have a name.
package final class PortDirectory: Sendable {
    private let top: TrustedDirectory  // immutable
    package let names: TrustedDirectory  // immutable
    package let sockets: TrustedDirectory  // immutable
    private let made = Mutex<ProcessEndpoints?>(nil)
    /// Whether it may be a directory that its owner shares with a group.
    package let mayBeShared: Bool  // immutable
    /// The process that has swept the names.
    private let sweeper = Atomic<Int32>(0)

    package var path: String { top.path }

    package var sharing: DirectorySharing { top.sharing }

    private init(_ top: TrustedDirectory, makes: Bool = true, mayBeShared: Bool) throws(PortError) {
        self.top = top
        self.mayBeShared = mayBeShared
        names = try top.subdirectory("names", makes: makes)
        sockets = try top.subdirectory("sockets", makes: makes)
    }

    /// Opens and verifies the directory at an absolute path, and makes it and its two parts when they are not there. Its
    /// parent is not made. If it may be a directory that its owner shares with a group, this process may connect to
    /// listeners of other users in it while this object lives.
    ///
    /// - Throws: `directoryUntrusted` when it or a part of it is a symbolic link, is no directory, belongs to another
    ///   user or is open to others; `descriptorLimit`; `systemCallFailed` for the rest.
    package static func open(path: String, mayBeShared: Bool = false) throws(PortError) -> PortDirectory {
        let top = try TrustedDirectory.open(path: path, mayBeShared: mayBeShared)
        let directory = try PortDirectory(top, mayBeShared: mayBeShared)
        if case .group(let owner, _, _) = top.sharing, sysIsOwnUser(owner) {
            // Members cannot make these. If this fails, the call that needs them reports why.
            _ = try? directory.supervisors(makes: true)
            _ = try? directory.declared(makes: true)
        }
        return directory.noted()
    }

    /// The entries that a directory of ports may have.
    package static let entries: Set<String> = ["names", "sockets", "supervisors", declaredName, "rules", "locks"]

    /// The same for a directory as it is, without making anything; nil when it, or a part of it, is not there.
    package static func openExisting(path: String, mayBeShared: Bool = false) throws(PortError) -> PortDirectory? {
        try PortError.unlessMissing { () throws(PortError) in
            let top = try TrustedDirectory.open(path: path, makes: false, mayBeShared: mayBeShared)
            return try PortDirectory(top, makes: false, mayBeShared: mayBeShared).noted()
        }
    }

    /// The variable of the environment that holds the path of another directory. `portctl --directory` sets it for the
    /// commands that it starts.
    package static let variable = "SWIFT_PORT_DIRECTORY"

    /// The directory that is at its path now, opened anew.
    package func reopened() throws(PortError) -> PortDirectory? {
        try Self.openExisting(path: path, mayBeShared: mayBeShared)
    }

    /// The subdirectory for sockets at which supervisors listen.
    package static let declaredName = "declared"

    /// The path of this user's directory, as the environment and the program have it now.
    package static func userPath() -> String {
        userPath(
            configured: sysEnvironment(variable), domain: domain.withLock { $0 },
            runtimeDirectory: sysEnvironment("XDG_RUNTIME_DIR"),
            serviceDirectories: sysEnvironment("RUNTIME_DIRECTORY"), temporaryDirectory: sysEnvironment("TMPDIR"),
            user: sysUserID())
    }

    /// The directory of the supervisors, which hold names until they have started the names' owners; nil when it is not
    /// there, and not made.
    ///
    /// - Throws: as ``open(path:mayBeShared:)``.
    package func supervisors(makes: Bool) throws(PortError) -> TrustedDirectory? {
        try part("supervisors", makes: makes)
    }

    /// The same for the directory of the sockets at which supervisors listen for names.
    package func declared(makes: Bool) throws(PortError) -> TrustedDirectory? { try part("declared", makes: makes) }

    private func part(_ name: String, makes: Bool) throws(PortError) -> TrustedDirectory? {
        try PortError.unlessMissing { () throws(PortError) in try top.subdirectory(name, makes: makes) }
    }

    /// Whether an address is that of a socket in this directory.
    package func holds(_ address: PortAddress) -> Bool {
        guard let part = SocketPath.split(address.path)?.directory, let (top, last) = SocketPath.split(part),
            ["sockets", Self.declaredName].contains(where: { $0.utf8.elementsEqual(last.utf8) })
        else { return false }
        return path.utf8.elementsEqual(top.utf8) || isAlso(at: top)
    }

    /// Whether a path leads to this open directory now: the one by which it was opened, or another.
    func isAlso(at path: String) -> Bool { top.isAlso(at: path) }

    /// Whether the path and its parts still lead to these open directories, and they are still closed to others.
    package func checkCurrent() -> Bool { top.checkCurrent() && names.checkCurrent() && sockets.checkCurrent() }
}

extension PortDirectory {
    /// By the bytes of the path: equal texts may be different paths.
    private static let users = Mutex<[[UInt8]: PortDirectory]>([:])

    private static let domain = Mutex<String?>(nil)

    /// Sets another directory for the user, an absolute path, which may be shared; nil for none. One that the
    /// environment names has precedence.
    package static func setDomain(_ path: String?) { domain.withLock { $0 = path } }

    /// The directory of this process's user, opened once. If it was removed, replaced or opened to others since, it is
    /// opened again; a failure is not cached.
    ///
    /// - Returns: the same object each time, while the environment and the file system stay as they are.
    /// - Throws: as ``open(path:mayBeShared:)`` does.
    package static func user() throws(PortError) -> PortDirectory {
        let (path, mayBeShared) = (userPath(), domain.withLock { $0 } != nil)
        let key = Array(path.utf8)
        let known = users.withLock { $0[key] }
        if let known, known.mayBeShared == mayBeShared, known.checkCurrent() { return known }
        let fresh = try open(path: path, mayBeShared: mayBeShared)
        // Another thread may have opened it meanwhile. The one that is not used is closed after the lock is free.
        return users.withLock { directories in
            if let other = directories[key], other !== known { return other }
            directories[key] = fresh
            return fresh
        }
    }

    /// The path of a user's directory: the one in the environment; else the program's domain; else `swift-ports` in the
    /// user's runtime directory, else in the first of those that systemd made for the service (`RuntimeDirectory=`),
    /// which a colon separates; else `swift-ports-` and the user's id in the temporary directory. A relative path in
    /// the environment is ignored.
    package static func userPath(
        configured: String?, domain: String? = nil, runtimeDirectory: String?, serviceDirectories: String? = nil,
        temporaryDirectory: String?,
        user: uid_t
    ) -> String {
        func absolute(_ path: String?) -> String? { path?.utf8.first == UInt8(ascii: "/") ? path : nil }
        if let configured = absolute(configured) ?? domain { return configured }
        let first = serviceDirectories?.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).first
        for directory in [runtimeDirectory, first.map { String(decoding: $0, as: UTF8.self) }] {
            if let directory = absolute(directory) { return directory + "/swift-ports" }
        }
        if let temporary = absolute(temporaryDirectory) { return temporary + "/swift-ports-\(user)" }
        return "/tmp/swift-ports-\(user)"
    }

    /// Whether this process has yet to sweep the names; true only once.
    package func beginSweepOfNames() -> Bool {
        let process = sysProcessID()
        return sweeper.exchange(process, ordering: .relaxed) != process
    }

    /// This process's sockets in this directory; the object is made on first use, and again in a forked child.
    ///
    /// - Returns: the same object each time in the same process.
    /// - Throws: `directoryUntrusted`, `descriptorLimit` and `systemCallFailed`.
    package func endpoints() throws(PortError) -> ProcessEndpoints {
        let known = made.withLock { $0 }
        if let known, known.process == sysProcessID() { return known }
        let fresh = try ProcessEndpoints(in: sockets)
        return made.withLock { made in
            if let other = made, other !== known { return other }
            made = fresh
            return fresh
        }
    }
}

// MARK: - Listeners

// Which listeners of other users this process connects to: those in a shared directory that the program has opened, if
// the user that listens made the socket's file. The kernel vouches for both: a user cannot give a file to another user,
// and in a shared directory cannot replace another user's file.
extension PortDirectory {
    /// The directories that are open, by path; one may be open several times.
    private static let opened = Mutex<[[UInt8]: [WeakReference<PortDirectory>]]>([:])

    /// Allows connections to listeners of other users in the directory, if it is a shared one, and ports to come that are
    /// in it.
    func noted() -> Self {
        Self.opened.withLock { known in
            known = known.compactMapValues { opened in
                let living = opened.filter { $0.object != nil }
                return living.isEmpty ? nil : living
            }
            known[Array(path.utf8), default: []].append(WeakReference(self))
        }
        return self
    }

    /// The shared directory that is open at a path, by whatever path it was opened; not one that was there before.
    private static func opened(at path: String) -> PortDirectory? {
        // Those that were opened by this path come first.
        let living = opened.withLock { known in
            (known[Array(path.utf8)] ?? []).compactMap(\.object) + known.values.joined().compactMap(\.object)
        }
        return living.first { $0.sharing.isShared && $0.isAlso(at: path) }
    }

    /// The directory that is open by this path. Opens nothing: the path may be a peer's.
    ///
    /// - Returns: nil when this process has none open, or another one is there now.
    static func opened(byPath path: String) -> PortDirectory? {
        let living = opened.withLock { known in (known[Array(path.utf8)] ?? []).compactMap(\.object) }
        return living.first { $0.checkCurrent() }
    }

    /// Whether a lock is that of the path of a port's socket, which was bound to a temporary path first, and is held.
    ///
    /// - Throws: `directoryUntrusted` when this process does not have the directory open; `systemCallFailed`.
    static func isLock(
        _ lock: SharedDescriptor, ofSocketAt path: String, boundTo bound: String
    ) throws(PortError) -> Bool {
        guard let (part, name) = SocketPath.split(path), let (top, last) = SocketPath.split(part),
            last.utf8.elementsEqual("sockets".utf8), let parts = EndpointFileName(name), !parts.isLock,
            SocketPath.split(bound)?.name == name + ProcessEndpoints.temporarySuffix
        else { return false }
        guard let directory = opened(byPath: top) else { throw PortError(.directoryUntrusted, subject: .path(top)) }
        let kind = try directory.sockets.fileLock(decides: false)
        do throws(SystemError) {
            let there = try sysStatus(EndpointFileName.lock(of: parts.id), in: directory.sockets.raw)
            // Removed by a program that cleans up: the path may be taken for a dead process's.
            guard let there else { throw SystemError(ENOENT) }
            guard try sysIsOpen(lock.rawValue, on: there) else { return false }
            return try sysLock(lock.rawValue, kind, within: .zero)
        } catch {
            throw PortError(error, subject: .path(path))
        }
    }

    /// Whether this process may talk to another user that listens at a path; the user is the one that the kernel
    /// reports for the connection.
    static func admitsListener(_ user: UInt32, atPath path: String) -> Bool {
        guard sysStandsForOneUser(user), let (part, name) = SocketPath.split(path),
            let (top, last) = SocketPath.split(part), let directory = opened(at: top)
        else { return false }
        // A supervisor's socket is made for another user, by root.
        let isDeclared = last.utf8.elementsEqual(declaredName.utf8)
        if isDeclared, directory.sharing.isAdministered(by: user) { return true }
        guard let maker = directory.maker(of: name, in: last) else { return false }
        return maker == user
    }

    /// The user that owns a socket in a part of the directory; nil when there is none, or its owner cannot be known.
    private func maker(of name: String, in part: String) -> UInt32? {
        let holder: TrustedDirectory?
        if part.utf8.elementsEqual("sockets".utf8) {
            holder = sockets
        } else if part.utf8.elementsEqual(Self.declaredName.utf8) {
            holder = (try? declared(makes: false)) ?? nil
        } else {
            holder = nil
        }
        guard let holder, let status = (try? sysStatus(name, in: holder.raw)) ?? nil, status.isSocket else {
            return nil
        }
        return status.owner
    }
}
