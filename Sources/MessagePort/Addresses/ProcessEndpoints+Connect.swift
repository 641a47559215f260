// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

extension ProcessEndpoints {
    /// Connects to a listening socket of this user.
    ///
    /// - Parameters:
    ///   - path: an absolute path, of any length.
    ///   - deadline: how long to wait for a place among those who wait to be accepted.
    /// - Returns: the connection; or that the listener is busy; or that nobody listens there, or nothing is there.
    /// - Throws: `peerRefused` when the listener belongs to another user; `malformedPacket` when the path is not one
    ///   that a packet socket can have, or a socket of another type is there; `descriptorLimit`; `systemCallFailed` for
    ///   the rest.
    package static func connect(
        toPath path: String, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> ConnectOutcome {
        guard let parts = SocketPath.split(path) else { throw PortError(.malformedPacket, subject: .path(path)) }
        do throws(SystemError) {
            let socket = try sysPacketSocket()
            guard try connect(socket, path, parts, until: deadline) else { return .busy }
            let peer = try PeerIdentity(ofPeerOf: socket.raw)
            if peer.userID == sysUserID() { return .connected(SharedDescriptor(connection: socket), peer: peer) }
        } catch {
            switch error.code {
            case ECONNREFUSED, ENOENT, ENOTDIR: return .dead
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
