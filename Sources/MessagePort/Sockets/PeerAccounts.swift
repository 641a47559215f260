// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What the other processes take up at one port: decides, does nothing else. A process is paused, connection by
// connection, while it is over its limits; who gives back asks afterwards which connections may go on.
//
// The places in the queue are shared: a process that is alone with the port may have them all, of several each has an
// equal share, and one more share is kept for whoever is connected and has no message there yet. Who has used up its
// share goes on when half of it is free, so that many connections are not paused and read again for each message.

/// What something takes up in an account.
struct PeerCost: Hashable, Sendable {
    var messages = 0
    var bytes = 0
    var descriptors = 0

    /// What a message takes on the heap besides its payload: its place in the queue, and what is noted of its sender and of
    /// who waits for the answer.
    static let message = 256
    /// What each component takes besides its bytes, which lie in a piece of memory of their own.
    static let component = 72
    /// What a right takes besides: an address that was not known before has an object of its own.
    static let right = 256

    static func += (cost: inout PeerCost, other: PeerCost) {
        cost.messages += other.messages
        cost.bytes += other.bytes
        cost.descriptors += other.descriptors
    }

    static func -= (cost: inout PeerCost, other: PeerCost) {
        cost.messages -= other.messages
        cost.bytes -= other.bytes
        cost.descriptors -= other.descriptors
    }
}

/// Counts per process.
struct PeerAccounts {
    private struct Account {
        var connections = 0
        var cost = PeerCost()
        /// The connections that are not read until there is room.
        var paused: Set<UInt64> = []
        /// The connections that have rings.
        var rings: Set<UInt64> = []

        var isEmpty: Bool { connections == 0 && cost == PeerCost() }
    }

    /// How many connections of a process may have rings. A process of this library has one connection to a port, so the
    /// limit is for others.
    static let ringLimit = 8

    var limits = PeerLimits.standard
    /// How many messages the port's queue may hold; nil when its policy makes room for each.
    var queueLimit: Int?
    private var accounts = PeerTable<Account>()
    /// Whose the connections are.
    private var owners: [UInt64: PeerOwner] = [:]
    /// How many of the accounts have messages.
    private var sharerCount = 0

    /// Whether nothing is counted.
    var isEmpty: Bool { accounts.isEmpty && owners.isEmpty }

    /// How many messages each process may have in the queue.
    private var messageLimit: Int { messageLimit(of: sharerCount) }

    /// How many each may have when so many have some.
    private func messageLimit(of sharers: Int) -> Int {
        if let limit = limits.queuedMessages { return limit }
        guard let queueLimit, accounts.count > 1 else { return .max }
        return max(1, queueLimit / (accounts.count > sharers ? sharers + 1 : sharers))
    }

    /// Counts a connection.
    ///
    /// - Parameters:
    ///   - key: the connection.
    ///   - owner: its process.
    ///   - isLimited: whether it may be one too many.
    /// - Returns: false when the process has as many as it may: it is not counted then.
    mutating func connect(_ key: UInt64, of owner: PeerOwner, isLimited: Bool = true) -> Bool {
        if isLimited, let place = accounts.place(of: owner), accounts[place].connections >= limits.connections {
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
    /// - Returns: false when others of its process have as many as it may; it is not counted then.
    mutating func takeRings(_ key: UInt64) -> Bool {
        guard let place = owners[key].flatMap({ accounts.place(of: $0) }) else { return false }
        if accounts[place].rings.count >= Self.ringLimit { return false }
        accounts[place].rings.insert(key)
        return true
    }

    /// A connection that was to get rings got none.
    mutating func giveRings(_ key: UInt64) {
        guard let place = owners[key].flatMap({ accounts.place(of: $0) }) else { return }
        accounts[place].rings.remove(key)
    }

    /// Whether nothing new is read from a process.
    func isOver(_ owner: PeerOwner) -> Bool {
        accounts.place(of: owner).map { isOver(at: $0) } ?? false
    }

    private func isOver(at place: Int) -> Bool {
        let cost = accounts[place].cost
        return isOver(cost) || cost.messages >= messageLimit
    }

    private func isOver(_ cost: PeerCost) -> Bool {
        cost.bytes >= limits.queuedBytes || cost.descriptors >= limits.queuedDescriptors
    }

    /// What a process may still take up before nothing new is read from it, counted as one that has messages there.
    func allowance(of owner: PeerOwner) -> PeerCost {
        let cost = accounts.place(of: owner).map { accounts[$0].cost } ?? PeerCost()
        if isOver(cost) { return PeerCost() }
        let limit = messageLimit(of: cost.messages > 0 ? sharerCount : sharerCount + 1)
        return PeerCost(
            messages: max(0, limit - cost.messages), bytes: limits.queuedBytes - cost.bytes,
            descriptors: limits.queuedDescriptors - cost.descriptors)
    }

    /// Charges a process for the first of several messages, which will be given back together: for half of what it may still
    /// send at most, so that it goes on when half of what it has in the queue is taken.
    ///
    /// - Returns: what was charged.
    mutating func take(firstOf packets: [PacketFront], by owner: PeerOwner) -> PeerCost {
        let left = allowance(of: owner)
        let (messages, bytes) = (left.messages - left.messages / 2, left.bytes - left.bytes / 2)
        var cost = PeerCost()
        for packet in packets {
            guard cost.messages < messages, cost.bytes < bytes, packet.payloadSize <= limits.messageBytes else { break }
            cost += packet.cost
        }
        if cost.messages > 0 { take(cost, by: owner) }
        return cost
    }

    private func mayResume(_ cost: PeerCost) -> Bool {
        !isOver(cost) && cost.messages <= messageLimit / 2
    }

    /// Notes a connection as paused, if its process is over its limits.
    ///
    /// - Returns: whether it is.
    mutating func pause(_ key: UInt64) -> Bool {
        guard let place = owners[key].flatMap({ accounts.place(of: $0) }), isOver(at: place) else { return false }
        accounts[place].paused.insert(key)
        return true
    }

    mutating func take(_ cost: PeerCost, by owner: PeerOwner) {
        change(owner) { $0.cost += cost }
    }

    /// - Returns: whether connections that were paused may be read again: `takeResumable` tells which.
    mutating func giveBack(_ cost: PeerCost, by owner: PeerOwner) -> Bool {
        var (left, hasPaused) = (PeerCost(), false)
        change(owner) { account in
            account.cost -= cost
            (left, hasPaused) = (account.cost, !account.paused.isEmpty)
        }
        return hasPaused && mayResume(left)
    }

    /// Lets those connections go on that were paused and may be read again.
    ///
    /// - Parameter owner: whose; nil for all processes.
    /// - Returns: the connections; they are not paused any more.
    mutating func takeResumable(of owner: PeerOwner? = nil) -> Set<UInt64> {
        var resumed: Set<UInt64> = []
        for owner in owner.map({ [$0] }) ?? accounts.allOwners {
            guard let place = accounts.place(of: owner), mayResume(accounts[place].cost) else { continue }
            resumed.formUnion(accounts[place].paused)
            accounts[place].paused = []
        }
        return resumed
    }

    private mutating func change(_ owner: PeerOwner, _ body: (inout Account) -> Void) {
        let place = accounts.place(of: owner, default: Account())
        let hadMessages = accounts[place].cost.messages > 0
        body(&accounts[place])
        let hasMessages = accounts[place].cost.messages > 0
        if hadMessages != hasMessages { sharerCount += hasMessages ? 1 : -1 }
        if accounts[place].isEmpty { accounts.remove(at: place) }
    }
}
