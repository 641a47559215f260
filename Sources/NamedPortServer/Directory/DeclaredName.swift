// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A supervisor that holds a name until it has started the name's owner listens at the declared path. Two supervisors
// would remove each other's socket, so each first locks the name's file in the directory of supervisors, and only the
// holder of that lock makes and removes the socket. The lock of the name itself stays free: it belongs to the owner.

import MessagePort
import PortCLibrary
import PortSystem
import Synchronization

/// A name for which this process listens, to start its owner when the first client comes.
package final class DeclaredName: Sendable {
    /// The path at which it listens.
    package let path: String  // immutable
    private let directory: TrustedDirectory  // immutable; the directory of that path
    private let file: String  // immutable; its name there
    private let socket: FileDescriptor  // immutable
    private let made: FileStatus?  // immutable; what is at the path
    private let lock: Mutex<LockedFile?>  // emptied by end()

    /// The listening socket, which the owner will inherit.
    package var rawValue: CInt { socket.raw }

    /// Listens for a name in the directory of a name server.
    ///
    /// - Throws: `nameTaken` when a live port has the name, or another supervisor listens for it; as
    ///   ``PortNameServer/register(_:name:)``.
    package init(_ name: String, in server: PortNameServer) throws(PortError) {
        let portName = try PortName(name)
        let directory = try server.openDirectory()
        guard let supervisors = try directory.supervisors(makes: true),
            let declared = try directory.declared(makes: true)
        else { throw PortError(SystemError(ENOENT), subject: .path(directory.path)) }
        let path = directory.declaredPath(of: portName)
        let file = try PortNameServer.lock(portName, in: supervisors)
        do throws(PortError) {
            try file.cut()
            // While this process holds the name's lock, no process can register the name.
            let free = try PortNameServer.lock(portName, in: directory.names)
            do throws(PortError) {
                socket = try Self.listen(for: portName, in: declared)
            } catch {
                free.remove()
                throw error
            }
            free.remove()
            try file.write(try PortNameServer.record(PortAddress(path: path)).contents)
        } catch {
            file.remove()
            throw error
        }
        made = try? sysStatus(portName.fileName, in: declared.raw)
        self.path = path
        self.directory = declared
        self.file = portName.fileName
        lock = Mutex(consume file)
    }

    deinit {
        end()
    }

    /// Stops listening. Idempotent.
    package func end() {
        guard let lock = lock.withLock({ $0.take() }) else { return }
        // A process that does not know the lock may have put another socket there.
        if let made, let there = try? sysStatus(file, in: directory.raw), there.isSameFile(as: made) {
            try? sysUnlink(file, in: directory.raw)
        }
        lock.remove()
    }
}

extension DeclaredName {
    private static func listen(for name: PortName, in directory: TrustedDirectory) throws(PortError) -> FileDescriptor {
        let file = name.fileName
        // A process that listens there does not know the lock; systemd is one. The socket of a dead one is removed.
        switch try ProcessEndpoints.connect(to: file, in: directory) {
        case .connected(_, let peer): throw PortError(.nameTaken, subject: .name(name.string), owner: peer.processID)
        case .busy: throw PortError(.nameTaken, subject: .name(name.string))
        case .dead: break
        }
        do throws(SystemError) {
            if let left = try sysStatus(file, in: directory.raw), left.isSocket {
                try sysUnlink(file, in: directory.raw)
            }
            let socket = try sysPacketSocket()
            try sysBind(socket.raw, path: SocketPath.reachable(file, in: directory))
            if case .group(_, let group, _) = directory.sharing {
                try sysShareSocket(file, in: directory.raw, with: group)
            }
            try sysListen(socket.raw, backlog: ProcessEndpoints.listenBacklog)
            return socket
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + file))
        }
    }
}

extension PortNameServer {
    /// The names that supervisors hold and whose owners do not run, in alphabetical order. Names held by other
    /// programs, such as systemd, are not known here. A look-up of such a name starts its owner.
    ///
    /// - Returns: each with the supervisor's process.
    /// - Throws: as ``list()``.
    package func listDeclared() throws(PortError) -> [Registration] {
        let directory = try openDirectory()
        guard let supervisors = try directory.supervisors(makes: false) else { return [] }
        let running = try NameEntry.all(in: directory.names)
        return try NameEntry.all(in: supervisors).filter { running[$0.key] == nil }.values.map(\.registration)
            .sorted { $0.name < $1.name }
    }
}
