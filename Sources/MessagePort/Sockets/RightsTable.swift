// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// What this process knows by address: its own ports, and the ports of others that it holds rights to. It makes sure that
/// the same port is the same right each time it is received, and that a port of this process is reached in memory.
package final class RightsTable: Sendable {
    /// The process's table.
    package static let shared = RightsTable()

    private struct Entry: Sendable {
        weak let destination: (any PortDestination)?
    }

    // A destination found here may turn out to be held by nobody else. Its end takes this lock (`prune`), so it must come
    // after the lock is free: what a closure under the lock has looked at, it returns.
    private let entries = Mutex<[PortAddress: Entry]>([:])

    /// A port of this process has this address from now on.
    func publish(_ core: PortCore, at address: PortAddress) {
        entries.withLock { $0[address] = Entry(destination: core) }
    }

    /// The live port of this process that has an address.
    package func ownPort(at address: PortAddress) -> PortCore? {
        let core = entries.withLock { $0[address]?.destination as? PortCore }
        return core?.isDead == false ? core : nil
    }

    /// The address leads nowhere any more.
    func forget(_ address: PortAddress) {
        entries.withLock { _ = $0.removeValue(forKey: address) }
    }

    /// Forgets an address whose port or last right is gone.
    func prune(_ address: PortAddress) {
        let other = entries.withLock { entries -> (any PortDestination)? in
            let other = entries[address]?.destination
            if other == nil { entries[address] = nil }
            return other
        }
        withExtendedLifetime(other) {}
    }

    /// The right to the port at an address; connects when this process has none yet. Never waits.
    ///
    /// - Returns: the right; nil when no live port is there.
    /// - Throws: `sendTimedOut` when the port has too many connections waiting to be accepted; `peerRefused`,
    ///   `malformedPacket`, `descriptorLimit`, `systemCallFailed`.
    package func right(to address: PortAddress) throws(PortError) -> SendRight? {
        if let known = live(address) { return SendRight(known) }
        guard let remote = try Self.connect(to: address) else { return nil }
        let (winner, other) = entries.withLock { entries -> (any PortDestination, (any PortDestination)?) in
            let other = entries[address]?.destination
            if let other, !other.isDead { return (other, other) }
            entries[address] = Entry(destination: remote)
            return (remote, other)
        }
        withExtendedLifetime(other) {}
        return SendRight(winner)
    }

    /// The right to the port at an address; a dead name when it cannot be reached.
    ///
    /// - Throws: `descriptorLimit` when this process has no descriptor to find that out with.
    func right(orDeadNameAt address: PortAddress) throws(PortError) -> SendRight {
        do throws(PortError) {
            if let right = try right(to: address) { return right }
        } catch {
            // The port may live and have room: that it cannot be reached is this process's own want.
            if error.code == .descriptorLimit { throw error }
        }
        return SendRight(deadDestination(address))
    }

    /// What stands for a port that cannot be reached: the same object as long as there is a right to it.
    private func deadDestination(_ address: PortAddress) -> any PortDestination {
        let made = DeadDestination(address)
        if address == .nowhere { return made }  // the name of many ports
        let (winner, other) = entries.withLock { entries -> (any PortDestination, (any PortDestination)?) in
            let other = entries[address]?.destination
            if let other { return (other, other) }
            entries[address] = Entry(destination: made)
            return (made, nil)
        }
        withExtendedLifetime(other) {}
        return winner
    }

    /// Whether there is an entry for the address.
    func knows(_ address: PortAddress) -> Bool { entries.withLock { $0[address] != nil } }

    /// A new connection to the port at an address, also when the port is this process's own.
    package static func connect(to address: PortAddress) throws(PortError) -> RemotePort? {
        switch try ProcessEndpoints.connect(toPath: address.path) {
        case .connected(let socket, let peer):
            RemotePort(address, over: try SocketConnection(socket, port: nil, peer: peer))
        case .busy: throw PortError(.sendTimedOut, subject: .path(address.path))
        case .dead: nil
        }
    }

    private func live(_ address: PortAddress) -> (any PortDestination)? {
        let known = entries.withLock { $0[address]?.destination }
        guard let known, !known.isDead else { return nil }
        return known
    }
}
