// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortCLibrary
import PortSystem
import Synchronization

/// The directory in which a user's ports find each other: `names` holds a file for each registered name, `sockets`
/// the sockets of ports that were sent to another process or have a name.
package final class PortDirectory: Sendable {
    private let top: TrustedDirectory  // immutable
    /// The directory of names.
    package let names: TrustedDirectory  // immutable
    /// The directory of sockets.
    package let sockets: TrustedDirectory  // immutable
    private let made = Mutex<ProcessEndpoints?>(nil)
    /// Whether it may be one that its owner shares with a group.
    package let mayBeShared: Bool  // immutable
    /// The process that has swept the names.
    private let sweeper = Atomic<Int32>(0)

    /// The absolute path.
    package var path: String { top.path }

    /// With whom it is shared.
    package var sharing: DirectorySharing { top.sharing }

    private init(_ top: TrustedDirectory, makes: Bool = true, mayBeShared: Bool) throws(PortError) {
        self.top = top
        self.mayBeShared = mayBeShared
        names = try top.subdirectory("names", makes: makes)
        sockets = try top.subdirectory("sockets", makes: makes)
    }

    /// Opens the directory at a path, and makes it and its two parts when they are not there. Its parent is not made.
    ///
    /// - Parameters:
    ///   - path: an absolute path.
    ///   - mayBeShared: whether it may be one that its owner shares with a group. Then listeners of other users in it
    ///     can be connected to, as long as this object lives.
    /// - Returns: the open, verified directory.
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

    /// What there may be in a directory of names.
    package static let entries: Set<String> = ["names", "sockets", "supervisors", declaredName, "rules", "locks"]

    /// Opens the directory at a path as it is, without making anything.
    ///
    /// - Parameters:
    ///   - path: an absolute path.
    ///   - mayBeShared: as above.
    /// - Returns: the open, verified directory; nil when it, or a part of it, is not there.
    /// - Throws: as ``open(path:)`` does.
    package static func openExisting(path: String, mayBeShared: Bool = false) throws(PortError) -> PortDirectory? {
        do throws(PortError) {
            let top = try TrustedDirectory.open(path: path, makes: false, mayBeShared: mayBeShared)
            return try PortDirectory(top, makes: false, mayBeShared: mayBeShared).noted()
        } catch {
            if error.systemError?.code == ENOENT { return nil }
            throw error
        }
    }

    /// The variable of the environment that holds the path of another directory. `portctl --directory` tells the
    /// commands that it starts by it.
    package static let variable = "SWIFT_PORT_DIRECTORY"

    /// The directory as it is at its path now, if it is another one than this.
    package func reopened() throws(PortError) -> PortDirectory? {
        try Self.openExisting(path: path, mayBeShared: mayBeShared)
    }

    /// A directory inside, for sockets that others listen at.
    package static let declaredName = "declared"

    /// Where this process's user has the directory, as the environment and the program say now.
    package static var userPath: String {
        userPath(
            said: sysEnvironment(variable), domain: domain.withLock { $0 },
            runtimeDirectory: sysEnvironment("XDG_RUNTIME_DIR"),
            serviceDirectories: sysEnvironment("RUNTIME_DIRECTORY"), temporaryDirectory: sysEnvironment("TMPDIR"),
            user: sysUserID())
    }

    /// The directory of those who hold names until they have started the names' owners.
    ///
    /// - Parameter makes: whether it is made when it is not there.
    /// - Returns: the open, verified directory; nil when it is not there.
    /// - Throws: as ``open(path:)``.
    package func supervisors(makes: Bool) throws(PortError) -> TrustedDirectory? {
        try part("supervisors", makes: makes)
    }

    /// The directory of the sockets at which supervisors listen for names.
    ///
    /// - Parameter makes: whether it is made when it is not there.
    /// - Returns: the open, verified directory; nil when it is not there.
    /// - Throws: as ``open(path:)``.
    package func declared(makes: Bool) throws(PortError) -> TrustedDirectory? { try part("declared", makes: makes) }

    private func part(_ name: String, makes: Bool) throws(PortError) -> TrustedDirectory? {
        do throws(PortError) {
            return try top.subdirectory(name, makes: makes)
        } catch {
            if error.systemError?.code == ENOENT { return nil }
            throw error
        }
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
    package var isCurrent: Bool { top.isCurrent && names.isCurrent && sockets.isCurrent }
}

extension PortDirectory {
    /// By the bytes of the path: texts that are equal may be different paths.
    private static let users = Mutex<[[UInt8]: PortDirectory]>([:])

    private static let domain = Mutex<String?>(nil)

    /// From now on the user's directory is another one, which may be shared, unless the environment names one.
    ///
    /// - Parameter path: an absolute path; nil for none.
    package static func setDomain(_ path: String?) { domain.withLock { $0 = path } }

    /// The directory of this process's user, opened once. One that was removed, replaced or opened to others since is
    /// opened again; a failure is not remembered.
    ///
    /// - Returns: the same object each time, as long as the environment and the file system stay as they are.
    /// - Throws: as ``open(path:)`` does.
    package static func user() throws(PortError) -> PortDirectory {
        let (path, mayBeShared) = (userPath, domain.withLock { $0 } != nil)
        let key = Array(path.utf8)
        let known = users.withLock { $0[key] }
        if let known, known.mayBeShared == mayBeShared, known.isCurrent { return known }
        let fresh = try open(path: path, mayBeShared: mayBeShared)
        // Another thread may have opened it meanwhile. The one that is not kept is closed after the lock is free.
        return users.withLock { directories in
            if let other = directories[key], other !== known { return other }
            directories[key] = fresh
            return fresh
        }
    }

    /// Where a user's directory is: where it is said to be; else where the program has its domain; else `swift-ports`
    /// in the user's runtime directory, else in the first of those that systemd made for the service
    /// (`RuntimeDirectory=`), which a colon separates; else `swift-ports-` and the user's id in the temporary
    /// directory. A relative path in the environment counts as none.
    package static func userPath(
        said: String?, domain: String? = nil, runtimeDirectory: String?, serviceDirectories: String? = nil,
        temporaryDirectory: String?,
        user: uid_t
    ) -> String {
        func absolute(_ path: String?) -> String? { path?.utf8.first == UInt8(ascii: "/") ? path : nil }
        if let said = absolute(said) ?? domain { return said }
        let first = serviceDirectories?.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).first
        for directory in [runtimeDirectory, first.map { String(decoding: $0, as: UTF8.self) }] {
            if let directory = absolute(directory) { return directory + "/swift-ports" }
        }
        if let temporary = absolute(temporaryDirectory) { return temporary + "/swift-ports-\(user)" }
        return "/tmp/swift-ports-\(user)"
    }

    /// Whether this process is yet to sweep the names; says so once.
    package func beginSweepOfNames() -> Bool {
        let process = sysProcessID()
        return sweeper.exchange(process, ordering: .relaxed) != process
    }

    /// This process's sockets in this directory, made on first use, and anew in a forked child.
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
