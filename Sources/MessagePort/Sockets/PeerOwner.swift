// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Whose account something is in: a process, as far as the kernel tells processes apart.
enum PeerOwner: Hashable, Sendable {
    case process(Int32)
    /// A process without a number here, because it is in a process namespace that this process does not see: the number
    /// that the kernel gives to it alone (Linux 6.9).
    case unnumbered(UInt64)
    /// A connection of such a process, on a kernel that does not tell.
    case connection(UInt64)

    /// The process at the other end of a socket, whose identity is known.
    init(_ peer: PeerIdentity, on socket: CInt) {
        if peer.processID != 0 {
            self = .process(peer.processID)
        } else if let number = try? sysPeerProcessInode(socket) {
            self = .unnumbered(number)
        } else {
            self = .connection(Self.lastConnection.add(1, ordering: .relaxed).newValue)
        }
    }

    private static let lastConnection = Atomic<UInt64>(0)
}
