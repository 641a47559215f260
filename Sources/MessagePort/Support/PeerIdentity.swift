// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Which process sent a message, as the kernel knows it (`SO_PEERCRED` of `unix(7)`): a peer cannot forge it.
///
/// It is the identity that the peer had when its connection was made.
public struct PeerIdentity: Hashable, Sendable {
    /// The process.
    public let processID: Int32
    /// Its effective user.
    public let userID: UInt32
    /// Its effective group.
    public let groupID: UInt32

    package init(processID: Int32, userID: UInt32, groupID: UInt32) {
        self.processID = processID
        self.userID = userID
        self.groupID = groupID
    }

    /// The process at the other end of a socket.
    init(ofPeerOf socket: CInt) throws(SystemError) {
        let credentials = try sysPeerCredentials(socket)
        self.init(processID: credentials.process, userID: credentials.user, groupID: credentials.group)
    }

    /// This process. Asks the kernel for all three each time: a process may change its user, and a forked child has
    /// another id.
    public static var current: PeerIdentity {
        PeerIdentity(processID: sysProcessID(), userID: sysUserID(), groupID: sysGroupID())
    }
}
