// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The live connections of this process, by number: how a ``PeerIdentity``, which has the number, leads to the process
/// that it names. A message carries the number alone, so that it retains no connection and counts no reference.
final class ConnectionTable: Sendable {
    /// How to open the process at the other end.
    enum Peer: Sendable {
        /// The kernel knows it by the socket.
        case connected(SharedDescriptor)
        /// A worker that this process launched, nil when it had ended at once. The kernel names the maker of the pair
        /// of sockets, which is this process, at both ends.
        indirect case launched(LaunchedProcess?, SharedDescriptor)

        var socket: SharedDescriptor {
            switch self {
            case .connected(let socket), .launched(_, let socket): socket
            }
        }
    }

    static let shared = ConnectionTable()

    private let entries = Mutex<[UInt64: Peer]>([:])
    private static let lastNumber = Atomic<UInt64>(0)

    /// A number that no other connection of this process has or had.
    static func makeNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

    /// A connection with this number begins.
    func add(_ peer: Peer, as number: UInt64) { entries.withLock { $0[number] = peer } }

    /// The connection has ended.
    func remove(_ number: UInt64) {
        let entry = entries.withLock { $0.removeValue(forKey: number) }
        withExtendedLifetime(entry) {}
    }

    /// As above, in a forked child, where the lock may be held permanently: then the entry stays.
    func removeInherited(_ number: UInt64) {
        let entry = entries.withLockIfAvailable { $0.removeValue(forKey: number) }
        withExtendedLifetime(entry) {}
    }

    /// What is at the other end of a connection.
    ///
    /// - Throws: `connectionEnded`, or `forkedProcess` for a connection of the process that forked this one.
    func peer(_ number: UInt64) throws(PortError) -> Peer {
        guard let peer = entries.withLock({ $0[number] }) else { throw PortError(.connectionEnded) }
        if peer.socket.isInherited { throw PortError(.forkedProcess) }
        return peer
    }
}
