// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The accounts of a port's peers, for its sockets and for what outlives those: messages, and descriptors that wait to be
/// closed.
final class PeerLedger: Sendable {
    private let accounts = Mutex(PeerAccounts())
    /// Whose connections go on when there is room. Set once, before anything is charged; looked at only when one is paused.
    private let sockets = OnceReference<Weak<PortSockets>>()
    private let forkCount = sysForkCount()  // immutable

    func withLock<Result>(_ body: (inout PeerAccounts) -> Result) -> Result { accounts.withLock { body(&$0) } }

    /// The sockets that read on when there is room.
    func serve(_ sockets: PortSockets) { self.sockets.set(Weak(object: sockets)) }

    /// Whether nothing new is read from a process.
    func isOver(_ owner: PeerOwner) -> Bool { withLock { $0.isOver(owner) } }

    /// Charges a process for a message that begins. An answer that is awaited takes no place in the queue, and may have as
    /// many bytes as there may be; it is charged while it is put together.
    ///
    /// - Returns: the charge, and the most bytes that its message may have; no charge for a larger one, which is not kept.
    func charge(_ owner: PeerOwner, for header: PacketHeader, descriptors: Int) -> (charge: PeerCharge?, limit: Int) {
        let isAnswer = header.answers != 0
        let (cost, limit) = withLock { accounts -> (PeerCost?, Int) in
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
        withLock { $0.take(cost, by: owner) }
        return PeerCharge(self, owner, cost)
    }

    /// Takes a cost from its account again; connections that were paused because of it go on. In a forked child, whose
    /// accounts are its parent's, nothing is done.
    func giveBack(_ cost: PeerCost, by owner: PeerOwner) {
        if sysForkCount() != forkCount { return }
        if withLock({ $0.giveBack(cost, by: owner) }) { sockets.object?.object?.resume(owner) }
    }
}

/// What a message, or an unread reply, takes up in its peer's account until the object goes.
final class PeerCharge: Sendable {
    private let ledger: PeerLedger  // immutable
    private let owner: PeerOwner  // immutable
    private let cost: PeerCost  // immutable

    /// For an account that has taken it already.
    fileprivate init(_ ledger: PeerLedger, _ owner: PeerOwner, _ cost: PeerCost) {
        self.ledger = ledger
        self.owner = owner
        self.cost = cost
    }

    deinit {
        ledger.giveBack(cost, by: owner)
    }
}
