// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What the other processes take up at one port: decides, does nothing else. A process is paused, connection by connection,
// while it is over its limits; who gives back asks afterwards which connections may go on.
//
// The places in the queue are shared: a process that is alone with the port may have them all, of several each has an equal
// share, and one more share is kept for whoever is connected and has no message there yet. Who has used up its share goes on
// when half of it is free, so that many connections are not paused and read again for each message.

/// What something takes up in an account.
struct PeerCost: Hashable, Sendable {
    var messages = 0
    var bytes = 0
    var descriptors = 0

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
    private var accounts: [PeerOwner: Account] = [:]
    /// Whose the connections are.
    private var owners: [UInt64: PeerOwner] = [:]
    /// How many of the accounts have messages.
    private var sharerCount = 0

    /// Whether nothing is counted.
    var isEmpty: Bool { accounts.isEmpty && owners.isEmpty }

    /// How many messages each process may have in the queue.
    private var messageLimit: Int {
        if let limit = limits.queuedMessages { return limit }
        guard let queueLimit, accounts.count > 1 else { return .max }
        return max(1, queueLimit / (accounts.count > sharerCount ? sharerCount + 1 : sharerCount))
    }

    /// Counts a connection.
    ///
    /// - Parameters:
    ///   - key: the connection.
    ///   - owner: its process.
    ///   - isLimited: whether it may be one too many.
    /// - Returns: false when the process has as many as it may: it is not counted then.
    mutating func connect(_ key: UInt64, of owner: PeerOwner, isLimited: Bool = true) -> Bool {
        if isLimited, accounts[owner]?.connections ?? 0 >= limits.connections { return false }
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
        guard let process = owners[key] else { return false }
        if accounts[process]?.rings.count ?? 0 >= Self.ringLimit { return false }
        accounts[process]?.rings.insert(key)
        return true
    }

    /// Whether nothing new is read from a process.
    func isOver(_ owner: PeerOwner) -> Bool {
        guard let cost = accounts[owner]?.cost else { return false }
        return isOver(cost) || cost.messages >= messageLimit
    }

    private func isOver(_ cost: PeerCost) -> Bool {
        cost.bytes >= limits.queuedBytes || cost.descriptors >= limits.queuedDescriptors
    }

    private func mayResume(_ cost: PeerCost) -> Bool {
        !isOver(cost) && cost.messages <= messageLimit / 2
    }

    /// Notes a connection as paused, if its process is over its limits.
    ///
    /// - Returns: whether it is.
    mutating func pause(_ key: UInt64) -> Bool {
        guard let owner = owners[key], isOver(owner) else { return false }
        accounts[owner]?.paused.insert(key)
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
        for owner in owner.map({ [$0] }) ?? Array(accounts.keys) {
            guard let account = accounts[owner], mayResume(account.cost) else { continue }
            resumed.formUnion(account.paused)
            accounts[owner]?.paused = []
        }
        return resumed
    }

    private mutating func change(_ owner: PeerOwner, _ body: (inout Account) -> Void) {
        // In place, so that it is looked up once.
        func changed(_ account: inout Account) -> (sharers: Int, isEmpty: Bool) {
            let hadMessages = account.cost.messages > 0
            body(&account)
            let hasMessages = account.cost.messages > 0
            return (hadMessages == hasMessages ? 0 : hadMessages ? -1 : 1, account.isEmpty)
        }
        let change = changed(&accounts[owner, default: Account()])
        sharerCount += change.sharers
        if change.isEmpty { accounts[owner] = nil }
    }
}
