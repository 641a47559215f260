// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

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

    /// Connects to a listening socket in a trusted directory. It checks first what has the name, and does not follow a
    /// symbolic link: so it leads nowhere else, and to no file system that does not answer.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - directory: where.
    ///   - deadline: as above.
    /// - Returns: as above; a file that is no socket is dead.
    /// - Throws: as above.
    package static func connect(
        to name: String, in directory: TrustedDirectory, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> ConnectOutcome {
        let path = directory.path + "/" + name
        guard let file = try openSocketFile(name, in: directory, called: path) else { return .dead }
        let way = SocketPath.through(file.raw) ?? SocketPath.reachable(name, in: directory)
        return try connect(toPath: way, called: path, until: deadline)
    }

    private static func openSocketFile(
        _ name: String, in directory: TrustedDirectory, called path: String
    ) throws(PortError) -> FileDescriptor? {
        do throws(SystemError) {
            let file = try sysOpen(name, in: directory.raw, .place)
            if try sysStatus(file.raw).isSocket { return file }
            return nil
        } catch {
            if error.code == ENOENT { return nil }
            throw PortError(error, subject: .path(path))
        }
    }

    private static func connect(
        toPath way: String, called path: String, until deadline: MonotonicInstant
    ) throws(PortError) -> ConnectOutcome {
        guard let parts = SocketPath.split(way) else { throw PortError(.malformedPacket, subject: .path(path)) }
        do throws(SystemError) {
            let socket = try sysPacketSocket()
            guard try connect(socket, way, parts, until: deadline) else { return .busy }
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
