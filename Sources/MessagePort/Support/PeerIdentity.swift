// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Which process sent a message, as the kernel knows it (`SO_PEERCRED` of `unix(7)`): a peer cannot forge it.
///
/// It is the identity that the peer had when its connection was made. Once the process has ended, another one may get
/// its number. ``openProcess()`` gives the process itself, and what else the kernel knows of it.
///
/// Identities are equal when their three numbers are, whichever connection they came over.
public struct PeerIdentity: Hashable, Sendable {
    /// The process, by its number in this process's PID namespace; 0 for one that has no number there.
    public let processID: Int32
    /// Its effective user.
    public let userID: UInt32
    /// Its effective group.
    public let groupID: UInt32

    /// The number of the connection to the process, in the `ConnectionTable`; 0 for this process itself.
    let connection: UInt64

    private init(processID: Int32, userID: UInt32, groupID: UInt32, connection: UInt64) {
        self.processID = processID
        self.userID = userID
        self.groupID = groupID
        self.connection = connection
    }

    /// The process at the other end of a new connection.
    package init(processID: Int32, userID: UInt32, groupID: UInt32) {
        let connection = ConnectionTable.makeNumber()
        self.init(processID: processID, userID: userID, groupID: groupID, connection: connection)
    }

    /// The process at the other end of the socket of a new connection.
    init(ofPeerOf socket: CInt) throws(SystemError) {
        let credentials = try sysPeerCredentials(socket)
        self.init(processID: credentials.process, userID: credentials.user, groupID: credentials.group)
    }

    /// Identities are equal when process, user and group are.
    public static func == (left: PeerIdentity, right: PeerIdentity) -> Bool {
        left.processID == right.processID && left.userID == right.userID && left.groupID == right.groupID
    }

    /// Hashes process, user and group.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(processID)
        hasher.combine(userID)
        hasher.combine(groupID)
    }

    /// This process. Asks the kernel for all three each time: a process may change its user, and a forked child has
    /// another id.
    public static var current: PeerIdentity {
        PeerIdentity(processID: sysProcessID(), userID: sysUserID(), groupID: sysGroupID(), connection: 0)
    }

    /// Opens the process: no other process can take its place, even if it ends and another one gets its number.
    ///
    /// The kernel finds the process by the connection (`SO_PEERPIDFD`), not by its number; a worker that this process
    /// launched it finds by the descriptor with which this process watches the worker. The number is not used where the
    /// kernel does not offer that: a number that was reused meanwhile would be opened, and no later check could show
    /// that. So what this returns is always the process that made the connection, or began to listen at the port.
    ///
    /// It makes a few system calls and does not block, on any thread. Each call opens a new descriptor, except for a
    /// worker.
    ///
    /// - Returns: the process, which had not ended.
    /// - Throws: ``PortError/Code/connectionEnded`` when the connection over which the identity came has ended, or was
    ///   not admitted yet (inside a ``PeerPolicy``, use ``ConnectingPeer/openProcess()``). A client's connection ends
    ///   with its last right to the port, a server's with its port.
    ///   ``PortError/Code/systemCallFailed`` with `ESRCH` when the process has ended, reaped or not, while another one
    ///   has its end of the connection; with `ENOPROTOOPT` on a kernel older than Linux 6.5, for this process itself
    ///   with `ENOSYS` on one older than Linux 5.3, and with the error of a filter that refuses it.
    ///   ``PortError/Code/descriptorLimit``; ``PortError/Code/forkedProcess`` in a forked child, for an identity that
    ///   its parent had.
    public func openProcess() throws(PortError) -> PeerProcess {
        if connection > 0 { return try PeerProcess(self, ConnectionTable.shared.peer(connection)) }
        if processID != sysProcessID() { throw PortError(.forkedProcess) }
        return try PeerProcess(ofThisProcess: self)
    }
}
