// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The owner of an account: a process of a user, as far as the kernel distinguishes processes.
struct PeerID: Hashable, Sendable {
    /// What distinguishes processes.
    enum Number: Hashable, Sendable {
        case process(Int32)
        /// A process without a number here, because it is in a process namespace that this process does not see: the
        /// kernel's unique number for it (Linux 6.9).
        case unnumbered(UInt64)
        /// A connection of such a process, on a kernel that has no such number.
        case connection(UInt64)
    }

    let number: Number
    /// The effective user, as it was when the process connected.
    let user: UInt32

    /// The process at the other end of a socket, whose identity is known.
    init(_ peer: PeerIdentity, on socket: CInt) {
        user = peer.userID
        if peer.processID != 0 {
            number = .process(peer.processID)
        } else if let inode = try? sysPeerProcessInode(socket) {
            number = .unnumbered(inode)
        } else {
            number = .connection(Self.lastConnection.add(1, ordering: .relaxed).newValue)
        }
    }

    private init(_ number: Number, of user: UInt32) {
        self.number = number
        self.user = user
    }

    /// A process with a number, of this process's user unless said otherwise.
    static func process(_ number: Int32, of user: UInt32 = sysUserID()) -> PeerID {
        PeerID(.process(number), of: user)
    }

    private static let lastConnection = Atomic<UInt64>(0)
}
