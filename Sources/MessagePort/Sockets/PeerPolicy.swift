// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Which other processes a port talks to. It is asked once for each connection, before anything of it is read.
///
/// What it does not admit is refused: the other side gets ``PortError/Code/peerRefused``. A right that this process
/// uses itself is not asked about, nor is a worker that this process launched.
///
/// A policy narrows: whom the file system keeps from the port's socket, it cannot admit. The directories of names and
/// sockets are closed to other users, and a process of this library takes no listener of another user.
public struct PeerPolicy: Sendable {
    /// Processes of the port's own effective user: the policy of a port that is given no other.
    public static let sameUser = PeerPolicy { sysIsOwnUser($0.identity.userID) }

    let admits: @Sendable (borrowing ConnectingPeer) -> Bool

    /// A policy of the caller's own.
    ///
    /// - Parameter admits: called on the thread that receives for the port, with no lock held; while it runs, the port
    ///   receives nothing. It may be called on several threads at once.
    public init(_ admits: @escaping @Sendable (borrowing ConnectingPeer) -> Bool) {
        self.admits = admits
    }
}

/// A process that has connected to a port and waits to be admitted.
public struct ConnectingPeer: ~Copyable {
    /// Who it is, as the kernel noted when it connected.
    public let identity: PeerIdentity
    private let socket: SharedDescriptor

    init(_ identity: PeerIdentity, on socket: SharedDescriptor) {
        self.identity = identity
        self.socket = socket
    }

    /// A descriptor of the process (`pidfd_open(2)`): it stands for this process alone, also when its number is given
    /// to another. It is readable once the process has ended.
    ///
    /// To look at `/proc/<process>/exe`, open this first, look, and then check that it is not readable: so it is known
    /// that what was seen belongs to the peer.
    ///
    /// - Returns: a descriptor that closes with the last reference to it.
    /// - Throws: ``PortError/Code/systemCallFailed`` with `ESRCH` when the process has ended and with `ENOPROTOOPT` on
    ///   a kernel older than Linux 6.5; ``PortError/Code/descriptorLimit``.
    public func openProcess() throws(PortError) -> SharedDescriptor {
        do throws(SystemError) {
            return SharedDescriptor(try sysPeerProcess(socket.rawValue))
        } catch {
            throw PortError(error)
        }
    }
}
