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

/// The accounts of a port's peers, for its sockets and for what outlives those: messages, and descriptors that wait to
/// be closed.
final class PeerQuotas: Sendable {
    private let usage = Mutex(PeerUsage(limits: .standard, ownUser: sysIsOwnUser(sysUserID()) ? sysUserID() : nil))
    /// Resumes the paused connections of a process that is below its limits; read only when one is paused. It retains
    /// the port's sockets, which retain this, until they are closed: with a weak reference, each use of the sockets
    /// would count references on the slow path.
    private let resume = Mutex<RoomCallback?>(nil)
    private let forkGuard = ForkGuard()  // immutable

    /// A struct: a closure that is itself the value of a mutex gets wrapped at each access, unless that is optimized away.
    private struct RoomCallback: Sendable {
        let call: @Sendable (PeerID) -> Void
    }

    func withLock<Result>(_ body: (inout PeerUsage) -> Result) -> Result { usage.withLock { body(&$0) } }

    /// Sets what resumes a process's connections when there is room; nil when they are closed.
    func whenBelowLimits(_ resume: (@Sendable (PeerID) -> Void)?) {
        let new = resume.map { RoomCallback(call: $0) }
        let old = self.resume.withLock { known in
            defer { known = new }
            return known
        }
        withExtendedLifetime(old) {}  // released without the lock
    }

    /// Whether a process is over its limits, so that nothing new is read from it.
    func isOver(_ owner: PeerID) -> Bool { withLock { $0.isOver(owner) } }

    /// Charges a process for a message that begins: for the memory and descriptors that its head announces. An awaited
    /// reply takes no slot in the queue, and may have as many bytes as the format allows; it is charged while it is
    /// assembled. Sets `charge`, to nil for a larger message, which is dropped.
    ///
    /// - Returns: the most bytes that the message may have; and whether a check is needed before more is read: the
    ///   process is over its limits, or the message is too large.
    func charge(
        _ owner: PeerID, for header: PacketHeader, areDescriptorsLost: Bool, _ charge: inout PeerCharge?
    ) -> (limit: Int, mustCheck: Bool) {
        let isAnswer = header.answers != 0
        var cost: ResourceUsage?
        let result = withLock { usage in
            let limit = isAnswer ? MessageLimits.payload : usage.limits.messageBytes
            if header.totalLength > UInt64(limit) { return (limit, true) }
            let memory = ResourceUsage.message + Int(header.componentCount) * ResourceUsage.component
            let initialCost = ResourceUsage(
                messages: isAnswer ? 0 : 1, bytes: Int(header.totalLength) + memory,
                descriptors: areDescriptorsLost ? 0 : min(Int(header.descriptorCount), MessageLimits.descriptors))
            usage.charge(initialCost, by: owner)
            cost = initialCost
            return (limit, usage.isOver(owner))
        }
        // A previous charge, if there is one, is released here, without the lock.
        charge = if let cost { PeerCharge(self, owner, cost) } else { nil }
        return result
    }

    /// Charges a process for the messages of a batch, as many of the first as it may send now; with one of them for what is
    /// lent with it, too. Sets `isOver` to whether a check is needed before more is read from the process.
    ///
    /// - Returns: what was charged.
    func charge(
        _ owner: PeerID, forFirstOf packets: [PacketPrefix], and lent: ResourceUsage, _ isOver: inout Bool
    ) -> ResourceUsage {
        withLock { usage in
            let cost = usage.charge(firstOf: packets, and: lent, by: owner)
            isOver = usage.isOver(owner)
            return cost
        }
    }

    /// Charges a process for replies that it does not read.
    func charge(_ owner: PeerID, forUnread cost: ResourceUsage) -> PeerCharge {
        withLock { $0.charge(cost, by: owner) }
        return PeerCharge(self, owner, cost)
    }

    /// Deducts a cost from its account; connections that were paused because of it resume. In a forked child, whose
    /// accounts belong to the parent, it does nothing.
    func refund(_ cost: ResourceUsage, pipeEnds: Int = 0, by owner: PeerID) {
        if forkGuard.isInherited { return }
        if withLock({ $0.refund(cost, pipeEnds: pipeEnds, by: owner) }) { resume.withLock({ $0 })?.call(owner) }
    }

    /// An end of a pipe that the process has sent is closed.
    func removePipeEnd(of owner: PeerID) { refund(ResourceUsage(), pipeEnds: 1, by: owner) }
}

/// The charge of a message, a batch of them, or an unread reply to its peer's account, until this is deinitialized.
/// Each has exactly one.
struct PeerCharge: ~Copyable, Sendable {
    private let quotas: PeerQuotas
    private let owner: PeerID
    private var cost: ResourceUsage

    /// For a cost that the account already has.
    init(_ quotas: PeerQuotas, _ owner: PeerID, _ cost: ResourceUsage) {
        self.quotas = quotas
        self.owner = owner
        self.cost = cost
    }

    deinit { quotas.refund(cost, by: owner) }

    mutating func add(_ more: ResourceUsage) {
        quotas.withLock { $0.charge(more, by: owner) }
        cost += more
    }
}

/// How many packets may be read from a port's sockets for one dequeued message: one limit for all connections together,
/// one for those of a process, and one for each connection. Packets beyond them stay in the sockets. And how many clients
/// may be accepted: the others wait in the listener's backlog.
struct ReceiveBudget {
    /// For a port that reads while its queue has room.
    static let standard = ReceiveBudget(Tuning.standardBudget)
    /// For a port whose policy chooses among all that has arrived: more than a socket holds.
    static let choosing = ReceiveBudget(Tuning.choosingBudget)

    private var left: Int
    private var acceptsLeft = Tuning.acceptBudget
    private let share: Int  // immutable
    private let most: Int  // immutable
    /// The process that was read from last, which is usually the only one, and how many packets were read from it.
    private var last: (owner: PeerID, count: Int)?
    /// How many were read from the others; the entry of the last one is stale.
    private var used: [PeerID: Int] = [:]

    private init(_ limits: (packets: Int, ofProcess: Int, ofConnection: Int)) { (left, share, most) = limits }

    var isSpent: Bool { left <= 0 }

    /// Whether another client may be accepted, which is counted then.
    mutating func mayAccept() -> Bool {
        if acceptsLeft == 0 { return false }
        acceptsLeft -= 1
        return true
    }

    /// How many packets may be read from a connection of the process now.
    func grant(to owner: PeerID) -> Int { max(0, min(most, left, share - count(of: owner))) }

    private func count(of owner: PeerID) -> Int {
        if let last, last.owner == owner { return last.count }
        return used[owner] ?? 0
    }

    mutating func spend(_ count: Int, by owner: PeerID) {
        if count == 0 { return }
        left -= count
        let sum = self.count(of: owner) + count
        if let last, last.owner != owner { used[last.owner] = last.count }
        last = (owner, sum)
    }
}
