// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a child process finds the port of its parent: it inherits one end of a connected pair of SOCK_SEQPACKET sockets,
// and a variable of its environment has the descriptor's number and, so that no other descriptor is mistaken for it,
// the socket's inode. See Docs/CheckIn.md and Docs/WireFormat.md.

import PortCLibrary
import PortSystem
import Synchronization

enum Bootstrap {
    /// The variable of the environment: `<descriptor>:<inode>`, both in decimal.
    static let variable = "SWIFT_PORT_BOOTSTRAP"
    /// The descriptor in the child: the one after standard error.
    static let descriptor: CInt = 3

    private static let taken = Mutex<SendRight?>(nil)

    /// The variable's value for a child that inherits a socket.
    static func value(for socket: SharedDescriptor) throws(SystemError) -> String {
        "\(descriptor):\(try sysStatus(socket.rawValue).inode)"
    }

    /// The right to the parent's port; nil when there is none.
    static func right() throws(PortError) -> SendRight? {
        let result = taken.withLock { taken -> Result<SendRight?, PortError> in
            if let taken { return .success(taken) }
            guard let value = sysEnvironment(variable) else { return .success(nil) }
            do throws(PortError) {
                taken = try take(value)
                return .success(taken)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Takes over the descriptor that the variable names, if it is the intended one.
    ///
    /// - Returns: the right; nil when it is not: the variable came from a worker that started this process, and the
    ///   descriptor did not.
    static func take(_ value: String) throws(PortError) -> SendRight? {
        let numbers = value.split(separator: ":", omittingEmptySubsequences: false)
        guard numbers.count == 2, let descriptor = CInt(numbers[0]), descriptor > 2, let inode = UInt64(numbers[1])
        else {
            throw PortError(.bootstrapInvalid, subject: .reason(.notBootstrapVariable))
        }
        guard try isMeant(descriptor, inode: inode) else { return nil }
        let socket = SharedDescriptor(connection: FileDescriptor(owning: descriptor))
        let connection = try SocketConnection(socket, port: nil)
        return SendRight(RemotePort(.nowhere, over: connection))
    }

    /// Whether a descriptor is the intended one; then this makes it close-on-exec, as it is from the start where
    /// `bootstrap.c` has seen the variable.
    private static func isMeant(_ descriptor: CInt, inode: UInt64) throws(PortError) -> Bool {
        let user: uid_t
        do throws(SystemError) {
            guard try sysStatus(descriptor).inode == inode, try sysIsPacketSocket(descriptor) else { return false }
            user = try sysPeerCredentials(descriptor).user
            if sysIsOwnUser(user) { try sysCloseOnExec(descriptor) }
        } catch {
            if error.code == EBADF || error.code == ENOTSOCK { return false }
            throw PortError(.bootstrapInvalid, system: error)
        }
        if sysIsOwnUser(user) { return true }
        throw PortError(.bootstrapInvalid, subject: .reason(.anotherUsersBootstrap))
    }
}

extension PortError.StaticReason {
    fileprivate static let notBootstrapVariable = Self("the variable is not <descriptor>:<inode>")
    fileprivate static let anotherUsersBootstrap = Self("the other end belongs to another user")
}
