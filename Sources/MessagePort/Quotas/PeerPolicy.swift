// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Which other processes a port talks to. The port asks it once for each connection, before it reads anything from it.
///
/// A process that it does not admit is refused, and gets ``PortError/Code/peerRefused``. The port does not ask about a
/// right that this process uses itself, nor about a worker that this process launched.
///
/// A policy only narrows: it cannot admit a process that the file system keeps from the port's socket. The directories
/// of names and sockets are closed to other users, unless a program asks for a shared one.
///
/// The policy sees a process as it was when it connected: one that changes its user or its groups afterwards keeps the
/// connection.
public struct PeerPolicy: Sendable {
    /// Processes of the port's own effective user: the policy of a port that is given no other.
    public static let sameUser = PeerPolicy(checking: { sysIsOwnUser($0.identity.userID) })

    /// Processes with one of these effective users, by their numbers. A user without a number in this process's user
    /// namespace is none of them, also not by the overflow id (65534), as which all such users are shown.
    public static func users(_ users: Set<UInt32>) -> PeerPolicy {
        PeerPolicy(checking: { users.contains($0.identity.userID) && sysStandsForOneUser($0.identity.userID) })
    }

    /// Processes whose effective group, or one of whose supplementary groups, is one of these, by their numbers. On a
    /// kernel that does not report supplementary groups (before Linux 4.13, and some sandboxes) the effective group
    /// alone counts.
    public static func groups(_ groups: Set<UInt32>) -> PeerPolicy {
        PeerPolicy(checking: { peer in
            let known = groups.filter { sysStandsForOneGroup($0) }
            if known.contains(peer.identity.groupID) { return true }
            return ((try? peer.supplementaryGroups()) ?? []).contains { known.contains($0) }
        })
    }

    /// Admits each process that this policy or the other admits.
    public func or(_ other: PeerPolicy) -> PeerPolicy {
        let callsProgram = callsProgram || other.callsProgram
        return PeerPolicy(checking: { admits($0) || other.admits($0) }, callsProgram: callsProgram)
    }

    let admits: @Sendable (borrowing ConnectingPeer) -> Bool
    /// Whether it is, or contains, a closure of the program's.
    let callsProgram: Bool

    private init(checking admits: @escaping @Sendable (borrowing ConnectingPeer) -> Bool, callsProgram: Bool = false) {
        (self.admits, self.callsProgram) = (admits, callsProgram)
    }

    /// A custom policy.
    ///
    /// - Parameter admits: called on the thread that receives for the port, with no lock held; while it runs, the port
    ///   receives nothing. It may be called on several threads at once.
    public init(_ admits: @escaping @Sendable (borrowing ConnectingPeer) -> Bool) {
        self.init(checking: admits, callsProgram: true)
    }
}

/// A process that has connected to a port and waits to be admitted.
public struct ConnectingPeer: ~Copyable {
    /// Its identity, as the kernel noted it when it connected.
    public let identity: PeerIdentity
    private let socket: SharedDescriptor

    init(_ identity: PeerIdentity, on socket: SharedDescriptor) {
        self.identity = identity
        self.socket = socket
    }

    /// The process's supplementary groups, as the kernel noted them when it connected (`SO_PEERGROUPS`).
    ///
    /// - Throws: ``PortError/Code/systemCallFailed`` with `ENOPROTOOPT` where the kernel does not report them.
    public func supplementaryGroups() throws(PortError) -> [UInt32] {
        return try PortError.converting(sysPeerGroups(socket.rawValue))
    }

    /// Opens the process: no other process can take its place, even if it ends and another one gets its number. Opened
    /// later, by its ``identity``, it is the same while the connection lives.
    ///
    /// - Returns: the process, which had not ended.
    /// - Throws: as ``PeerIdentity/openProcess()``, except for `connectionEnded` and `forkedProcess`.
    public func openProcess() throws(PortError) -> PeerProcess { try PeerProcess(identity, at: socket) }
}
