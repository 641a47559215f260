// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// Back-pressure for each process. Connections are paused under the lock of the sockets, so that none is paused after
// the room for it has come.
extension PortSockets {
    /// Reserves rings for a connection in its process's account, and makes what they need.
    ///
    /// - Returns: what was made; nil when the process has enough rings, or making it failed: then nothing is reserved.
    func withRings<Made>(for connection: SocketConnection, _ make: () -> Made?) -> Made? {
        let key = connection.number
        let isReserved = state.withLock { state in
            state.isMember(connection) && quotas.withLock { $0.reserveRings(key) }
        }
        if !isReserved { return nil }
        let made = make()
        if made == nil { quotas.withLock { $0.releaseRings(key) } }
        return made
    }

    /// A connection has no rings any more, and may get others.
    func releaseRings(of connection: SocketConnection) {
        if !state.withLock({ $0.isMember(connection) }) { return }
        quotas.withLock { $0.releaseRings(connection.number) }
    }

    /// Reads again from connections of a process, or of all, that are under their limits.
    func resume(_ owner: PeerID? = nil) {
        let resumed = state.withLock { state in
            let members = quotas.withLock { $0.removeResumable(of: owner) }.compactMap { state.members[$0] }
            for member in members { member.setThrottled(false) }
            return members
        }
        for member in resumed { member.updateInterest() }
    }

    /// Whether nothing more is read from the connection, because its process is over its limits; then it is paused.
    func throttle(_ connection: SocketConnection) -> Bool {
        let isThrottled = state.withLock { state in
            guard state.isMember(connection), quotas.withLock({ $0.pause(connection.number) }) else { return false }
            connection.setThrottled(true)
            return true
        }
        if isThrottled { connection.updateInterest() }
        return isThrottled
    }

    /// Removes a paused connection whose peer is gone from the set, as the kernel would report it endlessly, until it
    /// is read again.
    func unwatch(_ connection: SocketConnection) {
        state.withLock { state in
            guard connection.isThrottled, state.isMember(connection) else { return }
            let key = connection.number
            epoll.remove(connection.descriptor.rawValue)
            state.unwatched.insert(key)
            // The thread that paused it may not have updated its interest yet: no events until it is to be read again.
            state.pausedInterests[key] = []
        }
    }
}
