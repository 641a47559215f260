// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// What the other processes use at one port: decisions only, without effects. A process is paused, connection by
// connection, while it is over its limits; the code that returns a charge asks afterwards which connections may resume.
//
// The slots of the queue are shared: a process that is alone with the port may have them all, several have equal
// shares, and one more share is reserved for processes that are connected and have no message there yet. A process that
// has used up its share resumes when half of it is free, so that many connections are not paused and resumed for each
// message. Where the processes are of several users, the slots are shared between users first, each as if it were one
// process.

/// What is charged to an account.
struct ResourceUsage: Hashable, Sendable {
    var messages = 0
    var bytes = 0
    var descriptors = 0

    /// What a message takes on the heap besides its payload: its slot in the queue, and what is recorded of its sender
    /// and of the requester that waits for the reply.
    static let message = 256
    /// What each component takes besides its bytes, which have an allocation of their own.
    static let component = 72
    /// What a right takes in addition: an address that was not known before has an object of its own.
    static let right = 256

    static func += (cost: inout ResourceUsage, other: ResourceUsage) {
        cost.messages += other.messages
        cost.bytes += other.bytes
        cost.descriptors += other.descriptors
    }

    static func -= (cost: inout ResourceUsage, other: ResourceUsage) {
        cost.messages -= other.messages
        cost.bytes -= other.bytes
        cost.descriptors -= other.descriptors
    }
}

extension PacketPrefix {
    /// The charge of a plain packet to the account of its process.
    var cost: ResourceUsage {
        ResourceUsage(messages: 1, bytes: payloadSize + ResourceUsage.message + ResourceUsage.component)
    }
}

/// Counts per process.
struct PeerUsage {
    private struct ProcessUsage {
        var connections = 0
        var cost = ResourceUsage()
        /// The ends of pipes that it has sent: read ends that have not hung up, and those that came with rights.
        var pipeEnds = 0
        /// The connections that are not read until there is room.
        var paused: Set<UInt64> = []
        var rings: Set<UInt64> = []

        /// Whether it may send, or has sent what is to be received. Ends of pipes stay after their process.
        var isActive: Bool { connections > 0 || cost != ResourceUsage() }
        var isEmpty: Bool { !isActive && pipeEnds == 0 }
    }

    /// What the processes of one user use together.
    private struct UserUsage {
        /// The active ones.
        var processes = 0
        var connections = 0
        var rings = 0
        var pipeEnds = 0
        var cost = ResourceUsage()
        /// How many of its processes have messages.
        var sharers = 0
        /// Whether connections are paused because of what other processes of the user use.
        var hasPaused = false

        var isEmpty: Bool { processes == 0 && pipeEnds == 0 }
    }

    var limits: PeerLimits
    /// How many messages the port's queue may hold; nil when its policy makes room for each.
    var queueLimit: Int?
    private var accounts = PeerTable<PeerID, ProcessUsage>()
    private var users = PeerTable<UInt32, UserUsage>()
    /// The process to which each connection belongs.
    private var owners: [UInt64: PeerID] = [:]
    /// How many processes, and how many users, are active: shares are for them.
    private var (processCount, userCount) = (0, 0)
    /// How many of the users have messages.
    private var sharerCount = 0
    /// The user whose processes have no common limit; nil when this process has the overflow uid, which others may have.
    private let ownUser: UInt32?

    init(limits: PeerLimits, ownUser: UInt32?) { (self.limits, self.ownUser) = (limits, ownUser) }

    var isEmpty: Bool { accounts.isEmpty && owners.isEmpty }

    /// How many messages a process of a user may have in the queue. A process that has none there, and so is no sharer,
    /// is counted as if it had some.
    private func messageLimit(of user: UInt32, isSharer: Bool = true) -> Int {
        if let limit = limits.queuedMessages { return limit }
        guard let queueLimit, processCount > 1 else { return .max }
        let account = users.index(of: user).map { users[$0] } ?? UserUsage()
        let limit = userMessageLimit(of: account, queueLimit, isSharer: isSharer || account.sharers > 0)
        return Self.share(of: limit, account.processes, isSharer ? account.sharers : account.sharers + 1)
    }

    /// How many messages the processes of a user may have in a queue.
    private func userMessageLimit(of account: UserUsage, _ queueLimit: Int, isSharer: Bool = true) -> Int {
        Self.share(of: queueLimit, userCount, isSharer ? sharerCount : sharerCount + 1)
    }

    /// An equal share for each of those that have messages, and one more for the others, if there are any.
    private static func share(of limit: Int, _ count: Int, _ sharers: Int) -> Int {
        count > 1 ? max(1, limit / (count > sharers ? sharers + 1 : sharers)) : limit
    }

    /// The limit of the processes of another user together, from that of one process.
    private func ofUser(_ limit: Int) -> Int {
        let (product, overflow) = limit.multipliedReportingOverflow(by: limits.processesOfUser)
        return overflow ? .max : product
    }

    /// Whether the processes of a user together have reached a limit, or more than the given fraction of their
    /// messages.
    private func isUserOver(_ user: UInt32, ofMessages part: Int = 1) -> Bool {
        guard user != ownUser || userCount > 1, let index = users.index(of: user) else { return false }
        let account = users[index]
        func isOver(_ limit: Int) -> Bool {
            part == 1 ? account.cost.messages >= limit : account.cost.messages > limit / part
        }
        if limits.queuedMessages == nil, let queueLimit, userCount > 1,
            isOver(userMessageLimit(of: account, queueLimit))
        {
            return true
        }
        if user == ownUser { return false }
        if let limit = limits.queuedMessages, isOver(ofUser(limit)) { return true }
        return account.cost.bytes >= ofUser(limits.queuedBytes)
            || max(account.cost.descriptors, account.pipeEnds) >= ofUser(limits.queuedDescriptors)
    }

    /// Counts a connection, if the limits do not apply to it, or allow it.
    ///
    /// - Returns: false when the process, or its user, has reached the limit: it is not counted then.
    mutating func connect(_ key: UInt64, of owner: PeerID, isLimited: Bool = true) -> Bool {
        if isLimited, let index = accounts.index(of: owner), accounts[index].connections >= limits.connections {
            return false
        }
        if isLimited, owner.user != ownUser, let index = users.index(of: owner.user),
            users[index].connections >= ofUser(limits.connections)
        {
            return false
        }
        change(owner) { $0.connections += 1 }
        owners[key] = owner
        return true
    }

    /// A connection has ended; one that was not counted changes nothing.
    mutating func disconnect(_ key: UInt64) {
        guard let owner = owners.removeValue(forKey: key) else { return }
        change(owner) { account in
            account.connections -= 1
            account.paused.remove(key)
            account.rings.remove(key)
        }
    }

    /// Counts a connection that gets rings.
    ///
    /// - Returns: false when connections of its process, or of its user, have reached the limit; it is not counted
    ///   then.
    mutating func reserveRings(_ key: UInt64) -> Bool {
        guard let owner = owners[key], let index = accounts.index(of: owner) else { return false }
        if accounts[index].rings.count >= Tuning.ringLimit { return false }
        if owner.user != ownUser, let index = users.index(of: owner.user),
            users[index].rings >= ofUser(Tuning.ringLimit)
        {
            return false
        }
        change(owner) { $0.rings.insert(key) }
        return true
    }

    /// A connection that was to get rings got none, or has none any more.
    mutating func releaseRings(_ key: UInt64) {
        guard let owner = owners[key] else { return }
        change(owner) { $0.rings.remove(key) }
    }

    /// Whether a process is over its limits, so that nothing new is read from it.
    func isOver(_ owner: PeerID) -> Bool { accounts.index(of: owner).map { isOver(owner, at: $0) } ?? false }

    private func isOver(_ owner: PeerID, at index: Int) -> Bool {
        let cost = accounts[index].cost
        return isOver(cost, accounts[index].pipeEnds) || cost.messages >= messageLimit(of: owner.user)
            || isUserOver(owner.user)
    }

    /// Ends of pipes have as much room as other descriptors, of their own: they stay as long as rights elsewhere.
    private func isOver(_ cost: ResourceUsage, _ pipeEnds: Int) -> Bool {
        cost.bytes >= limits.queuedBytes || max(cost.descriptors, pipeEnds) >= limits.queuedDescriptors
    }

    /// What a process may still use before nothing new is read from it; it counts as one that has messages there.
    func allowance(of owner: PeerID) -> ResourceUsage {
        let account = accounts.index(of: owner)
        let cost = account.map { accounts[$0].cost } ?? ResourceUsage()
        if isOver(cost, account.map { accounts[$0].pipeEnds } ?? 0) || isUserOver(owner.user) { return ResourceUsage() }
        let limit = messageLimit(of: owner.user, isSharer: cost.messages > 0)
        var left = ResourceUsage(
            messages: max(0, limit - cost.messages), bytes: limits.queuedBytes - cost.bytes,
            descriptors: limits.queuedDescriptors - cost.descriptors)
        if owner.user != ownUser, let index = users.index(of: owner.user) {
            let all = users[index].cost
            left.bytes = min(left.bytes, ofUser(limits.queuedBytes) - all.bytes)
            left.descriptors = min(left.descriptors, ofUser(limits.queuedDescriptors) - all.descriptors)
            if let limit = limits.queuedMessages.map(ofUser) {
                left.messages = min(left.messages, limit - all.messages)
            }
        }
        return left
    }

    /// Charges a process for the first of several messages, whose charge is returned as one: for at most half of what
    /// it may still send, so that it resumes when half of what it has in the queue is dequeued. A single one may have
    /// memory that is lent, of any size.
    ///
    /// - Returns: what was charged.
    mutating func charge(
        firstOf packets: [PacketPrefix], and lent: ResourceUsage = ResourceUsage(), by owner: PeerID
    ) -> ResourceUsage {
        let left = allowance(of: owner)
        let (messages, bytes) = (left.messages - left.messages / 2, left.bytes - left.bytes / 2)
        var cost = ResourceUsage()
        for packet in packets {
            guard cost.messages < messages, cost.bytes < bytes, packet.payloadSize <= limits.messageBytes else { break }
            cost += packet.cost
        }
        if cost.messages == 0 { return cost }
        cost += lent
        charge(cost, by: owner)
        return cost
    }

    private func mayResume(_ owner: PeerID, _ cost: ResourceUsage, _ pipeEnds: Int) -> Bool {
        !isOver(cost, pipeEnds) && cost.messages <= messageLimit(of: owner.user) / 2
            && !isUserOver(owner.user, ofMessages: 2)
    }

    /// Marks a connection as paused, if its process is over its limits.
    ///
    /// - Returns: whether it is.
    mutating func pause(_ key: UInt64) -> Bool {
        guard let owner = owners[key], let index = accounts.index(of: owner), isOver(owner, at: index) else {
            return false
        }
        accounts[index].paused.insert(key)
        if isUserOver(owner.user), let index = users.index(of: owner.user) { users[index].hasPaused = true }
        return true
    }

    mutating func charge(_ cost: ResourceUsage, by owner: PeerID) { change(owner) { $0.cost += cost } }

    mutating func addPipeEnd(of owner: PeerID) { change(owner) { $0.pipeEnds += 1 } }

    /// - Returns: whether connections that were paused may be read again: `removeResumable` returns them.
    mutating func refund(_ cost: ResourceUsage, pipeEnds: Int = 0, by owner: PeerID) -> Bool {
        var (left, leftEnds, hasPaused) = (ResourceUsage(), 0, false)
        change(owner) { account in
            account.cost -= cost
            account.pipeEnds -= pipeEnds
            (left, leftEnds, hasPaused) = (account.cost, account.pipeEnds, !account.paused.isEmpty)
        }
        guard let index = users.index(of: owner.user) else { return false }
        if isUserOver(owner.user, ofMessages: 2) {
            // The next process of the user that returns a charge has all of them checked.
            if hasPaused { users[index].hasPaused = true }
            return false
        }
        return users[index].hasPaused || hasPaused && mayResume(owner, left, leftEnds)
    }

    /// Resumes the connections that were paused and may be read again: of a process, and with it of others of its user
    /// that were paused because of the user's limit; or of all processes.
    ///
    /// - Returns: the connections; they are not paused any more.
    mutating func removeResumable(of owner: PeerID? = nil) -> Set<UInt64> {
        var resumed: Set<UInt64> = []
        for owner in owner.map({ owners(besides: $0) }) ?? accounts.allOwners {
            guard let index = accounts.index(of: owner), !accounts[index].paused.isEmpty else { continue }
            guard mayResume(owner, accounts[index].cost, accounts[index].pipeEnds) else {
                if let user = users.index(of: owner.user), isUserOver(owner.user, ofMessages: 2) {
                    users[user].hasPaused = true
                }
                continue
            }
            resumed.formUnion(accounts[index].paused)
            accounts[index].paused = []
        }
        return resumed
    }

    /// The processes to check when one has returned a charge.
    private mutating func owners(besides owner: PeerID) -> [PeerID] {
        guard let index = users.index(of: owner.user), users[index].hasPaused else { return [owner] }
        users[index].hasPaused = false  // until one of them must continue to wait
        return accounts.allOwners.filter { $0.user == owner.user }
    }

    private mutating func change(_ owner: PeerID, _ body: (inout ProcessUsage) -> Void) {
        let index = accounts.index(of: owner, default: ProcessUsage())
        let (before, connections, rings, pipeEnds, wasActive) = (
            accounts[index].cost, accounts[index].connections, accounts[index].rings.count, accounts[index].pipeEnds,
            accounts[index].isActive
        )
        body(&accounts[index])
        let (after, isActive) = (accounts[index].cost, accounts[index].isActive)
        let user = users.index(of: owner.user, default: UserUsage())
        let hadMessages = users[user].cost.messages > 0
        users[user].connections += accounts[index].connections - connections
        users[user].rings += accounts[index].rings.count - rings
        users[user].pipeEnds += accounts[index].pipeEnds - pipeEnds
        users[user].cost += after
        users[user].cost -= before
        if (before.messages > 0) != (after.messages > 0) { users[user].sharers += after.messages > 0 ? 1 : -1 }
        if wasActive != isActive {
            let wasUserActive = users[user].processes > 0
            users[user].processes += isActive ? 1 : -1
            processCount += isActive ? 1 : -1
            if wasUserActive != (users[user].processes > 0) { userCount += isActive ? 1 : -1 }
        }
        let hasMessages = users[user].cost.messages > 0
        if hadMessages != hasMessages { sharerCount += hasMessages ? 1 : -1 }
        if users[user].isEmpty { users.remove(at: user) }
        if accounts[index].isEmpty { accounts.remove(at: index) }
    }
}

/// Values by process, or by user. It caches the index of the last value that was changed: most lookups, message after
/// message, are for that one, and need no hashing.
struct PeerTable<Owner: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Value] = []
    private var owners: [Owner] = []
    private var indices: [Owner: Int] = [:]
    private var lastIndex = 0

    var count: Int { owners.count }
    var isEmpty: Bool { owners.isEmpty }
    var allOwners: [Owner] { owners }

    /// The index of a process's value, valid until a value is removed; nil when there is none.
    func index(of owner: Owner) -> Int? {
        if lastIndex < owners.count, owners[lastIndex] == owner { return lastIndex }
        return indices[owner]
    }

    /// The index of a process's value, which is added if there is none.
    mutating func index(of owner: Owner, default value: @autoclosure () -> Value) -> Int {
        if let known = index(of: owner) {
            lastIndex = known
            return known
        }
        lastIndex = owners.count
        indices[owner] = lastIndex
        owners.append(owner)
        values.append(value())
        return lastIndex
    }

    subscript(index: Int) -> Value {
        _read { yield values[index] }
        _modify { yield &values[index] }
    }

    /// Removes a value. Another one may have its index then.
    mutating func remove(at index: Int) {
        indices[owners[index]] = nil
        let (owner, value) = (owners.removeLast(), values.removeLast())
        if index == owners.count { return }
        (owners[index], values[index]) = (owner, value)
        indices[owner] = index
    }
}
