// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// What this process knows by address: its own ports, and the ports of others that it holds rights to. It makes the
/// same port the same right each time it is received, and has messages to a port of this process sent in memory.
package final class RightsTable: Sendable {
    package static let shared = RightsTable()

    private struct Entry: Sendable {
        /// A port of this process, retained until it ends: an object with weak references has slow reference counts,
        /// for all that use it.
        var own: (any PortEndpoint)?
        /// A port that has ended, or one of another process, as long as there are rights to it.
        weak var other: (any PortEndpoint)?

        var destination: (any PortEndpoint)? { own ?? other }
    }

    // A destination found here may have no other reference left. Its deinit takes this lock (`prune`), so it must run
    // after the unlock: a closure under the lock returns each destination that it has read.
    private let entries = Mutex<[PortAddress: Entry]>([:])

    /// Enters a port of this process at its address.
    func publish(_ port: any PortEndpoint, at address: PortAddress) {
        let other = entries.withLock { $0.updateValue(Entry(own: port), forKey: address) }
        withExtendedLifetime(other) {}
    }

    /// A port of this process has ended: its address leads to it only as long as there are rights to it.
    func didEnd(_ port: any PortEndpoint, at address: PortAddress) {
        let other = entries.withLock { entries -> Entry? in
            guard let own = entries[address]?.own, own === port else { return nil }
            return entries.updateValue(Entry(other: port), forKey: address)
        }
        withExtendedLifetime(other) {}
    }

    /// Enters a port of another process to which this one is connected from its beginning. A port that is known by the
    /// address stays.
    func enter(_ port: RemotePort, at address: PortAddress) {
        let known = entries.withLock { entries -> (any PortEndpoint)? in
            let known = entries[address]?.destination
            if known == nil { entries[address] = Entry(other: port) }
            return known
        }
        withExtendedLifetime(known) {}
    }

    /// The ports of this process that have an address.
    var ownPorts: [any PortEndpoint] { entries.withLock { $0.values.compactMap(\.own) } }

    /// What an address leads to, as far as this process knows.
    func destination(at address: PortAddress) -> (any PortEndpoint)? { entries.withLock { $0[address]?.destination } }

    func forget(_ address: PortAddress) {
        let other = entries.withLock { $0.removeValue(forKey: address) }
        withExtendedLifetime(other) {}
    }

    /// Removes an address whose port or last right is gone.
    func prune(_ address: PortAddress) {
        let other = entries.withLock { entries -> (any PortEndpoint)? in
            let other = entries[address]?.destination
            if other == nil { entries[address] = nil }
            return other
        }
        withExtendedLifetime(other) {}
    }

    /// The right to the port at an address that was looked up; connects when this process has not yet.
    ///
    /// - Parameters:
    ///   - address: the address.
    ///   - deadline: how long to wait while the port's backlog is full.
    ///   - connect: connects, where paths that lead anywhere are not allowed; does not wait.
    /// - Returns: the right; nil when no live port is there.
    /// - Throws: `sendTimedOut` when the port has too many connections waiting to be accepted; `peerRefused`,
    ///   `malformedPacket`, `descriptorLimit`, `systemCallFailed`.
    package func right(
        to address: PortAddress, until deadline: MonotonicInstant = .distantPast,
        connecting connect: RemotePort.Connect? = nil
    ) throws(PortError) -> SendRight? {
        let destination = destination(at: address) { !$0.pollDeath() }
        do throws(PortError) {
            if let connect, let remote = destination as? RemotePort {
                _ = try remote.reached(connecting: connect)
            } else {
                try destination.reach(until: deadline)
            }
            return SendRight(destination)
        } catch {
            if error.code == .deadName { return nil }
            throw error
        }
    }

    /// The same in a task, which blocks no thread while the port's backlog is full.
    nonisolated(nonsending) package func right(to address: PortAddress, waiting wait: TaskWaiter)
        async throws(PortError) -> SendRight?
    {
        let destination = destination(at: address) { !$0.pollDeath() }
        do throws(PortError) {
            try await destination.reach(waiting: wait)
            return SendRight(destination)
        } catch {
            if error.code == .deadName { return nil }
            throw error
        }
    }

    /// The right to the port at an address that came in a message, perhaps with the end of a pipe. Does not check whether
    /// the port exists: the right finds out when it is used. A right that has come back to its port's process is counted
    /// there before the end is closed.
    func right(receivedAt address: PortAddress, with end: ReceivedEnd? = nil) -> SendRight {
        if address == .nowhere { return SendRight(DeadPort(address)) }  // the address of many ports
        // No other port ever has such an address.
        let isUnique = address.isOfPort
        return SendRight(destination(at: address) { isUnique || !$0.pollDeath() }, with: end)
    }

    /// The destination for an address: the known one if it is fit, else a new one, not connected yet.
    private func destination(
        at address: PortAddress, isFit: (any PortEndpoint) -> Bool
    ) -> any PortEndpoint {
        let (winner, other) = entries.withLock { entries -> (any PortEndpoint, (any PortEndpoint)?) in
            let other = entries[address]?.destination
            if let other, isFit(other) { return (other, nil) }
            let made = RemotePort(address)
            entries[address] = Entry(other: made)
            return (made, other)
        }
        withExtendedLifetime(other) {}
        return winner
    }

    func knows(_ address: PortAddress) -> Bool { entries.withLock { $0[address] != nil } }

    /// A new connection to the port at an address, also when the port is this process's own.
    package static func connect(to address: PortAddress) throws(PortError) -> RemotePort? {
        let made = RemotePort(address)
        do throws(PortError) {
            _ = try made.reached()
            return made
        } catch {
            if error.code == .deadName { return nil }
            throw error
        }
    }
}
