// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
package import PortSystem
import Synchronization

// A process's sockets in the directory of sockets. All carry the process's random id, and share one lock file, made
// before the first of them: when its lock is free, the process has ended, and the next process that starts removes its
// sockets.

/// Makes and owns a process's socket files in one directory.
package final class ProcessEndpoints: Sendable {
    /// The process that made it. A forked child inherits the sockets, but they are not its own.
    package let process: Int32  // immutable
    /// The id in the names of its sockets.
    package let id: String  // immutable
    let sockets: TrustedDirectory  // immutable
    private let lock: Mutex<LockedFile?>  // emptied by deinit only
    private let counter = Atomic<UInt64>(0)
    /// Whether another process may have the lock, too.
    private let isLockShared = Atomic<Bool>(false)

    /// Chooses an id, and sweeps the sockets of processes that ended.
    ///
    /// - Throws: `directoryUntrusted`, `descriptorLimit` and `systemCallFailed`.
    package init(in sockets: TrustedDirectory) throws(PortError) {
        process = sysProcessID()
        self.sockets = sockets
        var id = EndpointFileName.makeID()
        var taken: LockedFile?
        // Only a sweeper that found the new file before it was locked can hold the lock: then choose another id.
        for _ in 0..<16 {
            if case .locked(let mine) = try LockedFile.acquire(EndpointFileName.lock(of: id), in: sockets) {
                taken = consume mine
                break
            }
            id = EndpointFileName.makeID()
        }
        guard taken != nil else { throw PortError(SystemError(EAGAIN), subject: .path(sockets.path)) }
        self.id = id
        lock = Mutex(taken)
        sweep()
    }

    deinit {
        let file = lock.withLock { $0.take() }
        guard let file else { return }
        // A socket that has moved has its path as long as the lock is held; the next process that sweeps removes the file.
        if isLockShared.load(ordering: .acquiring) { file.leave() } else { file.remove() }
    }

    /// The lock, which another process may have as well: it is held until the last of them is closed.
    func duplicateLock() throws(PortError) -> SharedDescriptor {
        try lock.withLock { (lock) throws(PortError) in
            guard let duplicate = try lock?.duplicate() else { throw PortError(.invalidPort) }
            isLockShared.store(true, ordering: .releasing)
            return SharedDescriptor(duplicate)
        }
    }

    /// A file name for a socket, never used by this process before.
    package func makeSocketName() -> String {
        "\(id).\(counter.wrappingAdd(1, ordering: .relaxed).newValue)"
    }
}

// MARK: - Connect

extension ProcessEndpoints {
    /// Connects to a listening socket of this user, or of another in a shared directory that this process has open.
    ///
    /// - Parameters:
    ///   - path: an absolute path, of any length.
    ///   - deadline: until when to wait for room in the listener's backlog.
    /// - Returns: the connection; or that the listener is busy; or that no process listens there, or nothing is there.
    /// - Throws: `peerRefused` when the listener belongs to another user; `malformedPacket` when the path is not one
    ///   that a packet socket can have, or a socket of another type is there; `descriptorLimit`; `systemCallFailed` for
    ///   the rest.
    package static func connect(
        toPath path: String, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> ConnectOutcome {
        try connect(toPath: path, called: path, until: deadline)
    }

    /// The same for a listening socket in a trusted directory. It checks the file's type first, and does not follow a
    /// symbolic link: so it leads nowhere else, and to no file system that does not answer. A file that is no socket is
    /// dead.
    package static func connect(
        to name: String, in directory: TrustedDirectory, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> ConnectOutcome {
        let path = directory.path + "/" + name
        guard let file = try openSocketFile(name, in: directory, called: path) else { return .dead }
        let socketPath = SocketPath.through(file.raw) ?? SocketPath.reachable(name, in: directory)
        return try connect(toPath: socketPath, called: path, until: deadline)
    }

    private static func openSocketFile(
        _ name: String, in directory: TrustedDirectory, called path: String
    ) throws(PortError) -> FileDescriptor? {
        do throws(SystemError) {
            let file = try sysOpen(name, in: directory.raw, .location)
            if try sysStatus(file.raw).isSocket { return file }
            return nil
        } catch {
            if error.code == ENOENT { return nil }
            throw PortError(error, subject: .path(path))
        }
    }

    private static func connect(
        toPath socketPath: String, called path: String, until deadline: MonotonicInstant
    ) throws(PortError) -> ConnectOutcome {
        guard let parts = SocketPath.split(socketPath) else { throw PortError(.malformedPacket, subject: .path(path)) }
        do throws(SystemError) {
            let socket = try sysPacketSocket()
            guard try connect(socket, socketPath, parts, until: deadline) else { return .busy }
            let peer = try PeerIdentity(ofPeerOf: socket.raw)
            // Checked before anything is sent or read.
            if sysIsOwnUser(peer.userID) || PortDirectory.admitsListener(peer.userID, atPath: path) {
                return .connected(SharedDescriptor(connection: socket), peer: peer)
            }
        } catch {
            switch error.code {
            case ECONNREFUSED, ENOENT, ENOTDIR:
                guard let reason = SocketPath.refusal(path) else { return .dead }
                throw PortError(.systemCallFailed, system: error, subject: .path(path, reason))
            case EPROTOTYPE, ENAMETOOLONG: throw PortError(.malformedPacket, system: error, subject: .path(path))
            case EACCES, EPERM: throw PortError(.peerRefused, system: error, subject: .path(path))
            default: throw PortError(error, subject: .path(path))
            }
        }
        throw PortError(.peerRefused, subject: .path(path))
    }

    private static func connect(
        _ socket: borrowing FileDescriptor, _ path: String, _ parts: (directory: String, name: String),
        until deadline: MonotonicInstant
    ) throws(SystemError) -> Bool {
        if path.utf8.count <= SocketPath.limit { return try sysConnect(socket.raw, path: path, until: deadline) }
        let directory = try sysOpen(parts.directory, .directory)
        return try sysConnect(socket.raw, path: SocketPath.through(directory.raw, parts.name), until: deadline)
    }
}

// MARK: - Sockets

extension ProcessEndpoints {
    package func path(of name: String) -> String { sockets.path + "/" + name }

    /// Removes a socket's file. A file that is not there is no error; in a forked child this does nothing, as the
    /// socket belongs to the parent.
    package func removeSocket(_ name: String) {
        guard sysProcessID() == process else { return }
        // If the kernel refuses, the next process that sweeps removes the file.
        try? sysUnlink(name, in: sockets.raw)
    }

    /// What the name of a socket ends with until it listens.
    static let temporarySuffix = ".new"

    /// See `Tuning`: a declared name's socket has the same.
    package static var listenBacklog: Int32 { Tuning.listenBacklog }

    /// Makes a socket under a fresh name and lets others connect. It gets its name only when it listens, so a process
    /// that sees it is not refused.
    ///
    /// - Throws: `descriptorLimit`, and `systemCallFailed` for example when the directory was removed or the disk is
    ///   full.
    package func makeListener(backlog: Int32) throws(PortError) -> Listener {
        let name = makeSocketName()
        let temporary = name + Self.temporarySuffix
        do throws(SystemError) {
            let descriptor = try sysPacketSocket()
            try sysBind(descriptor.raw, path: SocketPath.reachable(temporary, in: sockets))
            do throws(SystemError) {
                if case .group(_, let group, _) = sockets.sharing {
                    try sysShareSocket(temporary, in: sockets.raw, with: group)
                }
                try sysListen(descriptor.raw, backlog: backlog)
                try sysRename(temporary, to: name, in: sockets.raw)
            } catch {
                removeSocket(temporary)
                throw error
            }
            return Listener(descriptor, name: name, of: self)
        } catch {
            throw PortError(error, subject: .path(path(of: name), SocketPath.refusal(path(of: name))))
        }
    }
}

// MARK: - Sweep

extension ProcessEndpoints {
    /// See `Tuning`: the sweep of names has the same limit.
    package static var sweepLimit: Int { Tuning.sweepLimit }

    /// Removes the sockets and lock files of processes that ended. It leaves alone names of another form, and what the
    /// kernel refuses to remove.
    ///
    /// - Returns: how many files were removed.
    @discardableResult
    package func sweep() -> Int {
        guard let names = try? sysList(in: sockets.raw) else { return 0 }
        var files: [String: [String]] = [:]
        var locks: Set<String> = []
        for name in names {
            guard let parsed = EndpointFileName(name), parsed.id != id else { continue }
            if parsed.isLock { locks.insert(parsed.id) } else { files[parsed.id, default: []].append(name) }
        }
        // In another order each time, so that files that cannot be removed do not block the rest forever.
        var (removed, examined) = (0, 0)
        for owner in locks.union(files.keys).shuffled() {
            guard examined < Tuning.sweepLimit else { break }
            let names = files[owner, default: []].prefix(Tuning.sweepLimit - examined)
            examined += names.count + 1
            removed += sweep(owner, names, hadLock: locks.contains(owner))
        }
        return removed
    }

    /// Removes one owner's files, unless it lives.
    private func sweep(_ owner: String, _ names: ArraySlice<String>, hadLock: Bool) -> Int {
        // The lock file's owner is the user to which the id belongs. Another user's file among the others cannot be
        // removed, and is left alone.
        let lockName = EndpointFileName.lock(of: owner)
        if isOthers(hadLock ? lockName : names.first ?? lockName) { return 0 }
        // The lock is held while the files are removed, so a process that is just making its id is not mistaken for a
        // dead one.
        guard let attempt = try? LockedFile.acquire(lockName, in: sockets, within: .zero) else { return 0 }
        guard case .locked(let lock) = attempt else { return 0 }
        var removed = 0
        for name in names {
            // A living process's lock file may have been removed: then ask the socket.
            guard hadLock || isDead(name) else { continue }
            if (try? sysUnlink(name, in: sockets.raw)) != nil { removed += 1 }
        }
        lock.remove()
        return removed + (hadLock ? 1 : 0)
    }

    /// Whether a file in a shared directory belongs to another user, whose processes sweep it.
    private func isOthers(_ name: String) -> Bool {
        guard sockets.sharing.isShared, let status = (try? sysStatus(name, in: sockets.raw)) ?? nil else {
            return false
        }
        return !sysIsOwnUser(status.owner)
    }

    private func isDead(_ name: String) -> Bool {
        guard case .dead = try? Self.connect(to: name, in: sockets) else { return false }
        return true
    }
}

package enum ConnectOutcome: Sendable {
    /// Connected, non-blocking, to a process of this user, or of another that a shared directory admits.
    case connected(SharedDescriptor, peer: PeerIdentity)
    /// A process listens, but its backlog of waiting connections is full.
    case busy
    /// No process listens there.
    case dead
}
