// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Back-pressure for each process. Which connections are paused is decided under the lock of the sockets, so that a
// connection is never paused after the room for it has come.

import PortSystem
import Synchronization

extension PortSockets {
    /// Counts a connection that gets rings, if it may, and makes what it needs.
    ///
    /// - Returns: what was made; nil when the process has enough rings, or there was nothing to make it of: then it is not counted.
    func withRings<Made>(for connection: SocketConnection, _ make: () -> Made?) -> Made? {
        let key = state.withLock { state -> UInt64? in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.takeRings(key) })
            else { return nil }
            return key
        }
        guard let key else { return nil }
        let made = make()
        if made == nil { accounts.withLock { $0.giveRings(key) } }
        return made
    }

    /// Reads again from connections of processes that are under their limits.
    ///
    /// - Parameter owner: of which process; nil for all.
    func resume(_ owner: PeerID? = nil) {
        let resumed = state.withLock { state in
            let members = accounts.withLock { $0.takeResumable(of: owner) }.compactMap { state.members[$0] }
            for member in members { member.receiver.isHeldBack.store(false, ordering: .releasing) }
            return members
        }
        for member in resumed { member.updateInterest() }
    }

    /// Whether no further message is read from the connection, because its process is over its limits; then it is
    /// paused.
    func holdBack(_ connection: SocketConnection) -> Bool {
        let isHeldBack = state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.pause(key) }) else {
                return false
            }
            connection.receiver.isHeldBack.store(true, ordering: .releasing)
            return true
        }
        if isHeldBack { connection.updateInterest() }
        return isHeldBack
    }

    /// Does not look at a paused connection whose peer is gone, which the kernel would report for ever, until it is
    /// read again.
    func silence(_ connection: SocketConnection) {
        state.withLock { state in
            guard connection.receiver.isHeldBack.load(ordering: .acquiring),
                let key = state.keys[ObjectIdentifier(connection)]
            else { return }
            epoll.remove(connection.descriptor.rawValue)
            state.silenced.insert(key)
            // Whoever paused it has perhaps not said so yet: nothing is waited for until it is to be read again.
            state.pausedInterests[key] = []
        }
    }
}
