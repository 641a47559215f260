// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Back-pressure for each process. Which connections are paused is decided under the lock of the sockets, so that a
// connection is never paused after the room for it has come.

import PortSystem
import Synchronization

/// What a message, or an unread reply, takes up in its peer's account until the object goes.
final class PeerCharge: Sendable {
    private weak let sockets: PortSockets?  // immutable
    private let owner: PeerOwner  // immutable
    private let cost: PeerCost  // immutable

    /// For an account that has taken it already.
    fileprivate init(_ sockets: PortSockets, _ owner: PeerOwner, _ cost: PeerCost) {
        self.sockets = sockets
        self.owner = owner
        self.cost = cost
    }

    deinit {
        sockets?.giveBack(cost, by: owner)
    }
}

extension PortSockets {
    /// Charges a process for a message that begins. An answer that is awaited takes no place in the queue, and may have as
    /// many bytes as there may be; it is charged while it is put together.
    ///
    /// - Returns: the charge, and the most bytes that its message may have; no charge for a larger one, which is not kept.
    func charge(_ owner: PeerOwner, for header: PacketHeader, descriptors: Int) -> (charge: PeerCharge?, limit: Int) {
        let isAnswer = header.answers != 0
        let (cost, limit) = accounts.withLock { accounts -> (PeerCost?, Int) in
            let limit = isAnswer ? MessageLimits.payload : accounts.limits.messageBytes
            if header.totalLength > UInt64(limit) { return (nil, limit) }
            let cost = PeerCost(
                messages: isAnswer ? 0 : 1, bytes: Int(header.totalLength), descriptors: descriptors)
            accounts.take(cost, by: owner)
            return (cost, limit)
        }
        return (cost.map { PeerCharge(self, owner, $0) }, limit)
    }

    /// Charges a process for replies that it does not read.
    func charge(_ owner: PeerOwner, forUnread cost: PeerCost) -> PeerCharge {
        accounts.withLock { $0.take(cost, by: owner) }
        return PeerCharge(self, owner, cost)
    }

    /// Counts a connection that gets rings.
    ///
    /// - Returns: whether it may.
    func takeRings(for connection: SocketConnection) -> Bool {
        state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)] else { return false }
            return accounts.withLock { $0.takeRings(key) }
        }
    }

    fileprivate func giveBack(_ cost: PeerCost, by owner: PeerOwner) {
        if isInherited { return }
        if accounts.withLock({ $0.giveBack(cost, by: owner) }) { resume(owner) }
    }

    /// Reads again from connections of processes that are under their limits.
    ///
    /// - Parameter owner: of which process; nil for all.
    func resume(_ owner: PeerOwner? = nil) {
        let resumed = state.withLock { state in
            let members = accounts.withLock { $0.takeResumable(of: owner) }.compactMap { state.members[$0] }
            for member in members { member.isHeldBack.store(false, ordering: .releasing) }
            return members
        }
        for member in resumed { member.updateInterest() }
    }

    /// Whether no further message is read from the connection, because its process is over its limits; then it is paused.
    func holdBack(_ connection: SocketConnection) -> Bool {
        guard accounts.withLock({ $0.isOver(connection.owner) }) else { return false }
        let isHeldBack = state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.pause(key) }) else {
                return false
            }
            connection.isHeldBack.store(true, ordering: .releasing)
            return true
        }
        if isHeldBack { connection.updateInterest() }
        return isHeldBack
    }

    /// Does not look at a paused connection whose peer is gone, which the kernel would report for ever, until it is read
    /// again.
    func silence(_ connection: SocketConnection) {
        state.withLock { state in
            guard connection.isHeldBack.load(ordering: .acquiring),
                let key = state.keys[ObjectIdentifier(connection)]
            else { return }
            epoll.remove(connection.descriptor.rawValue)
            state.silenced.insert(key)
            // Whoever paused it has perhaps not said so yet: nothing is waited for until it is to be read again.
            state.pausedInterests[key] = []
        }
    }
}
