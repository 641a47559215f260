// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What the other processes take up at one port: decides, does nothing else. A process is paused, connection by connection,
// while it is over its limits; who gives back asks afterwards which connections may go on.

/// Counts per process.
struct PeerAccounts {
    private struct Account {
        var connections = 0
        var bytes = 0
        var descriptors = 0
        /// The connections that are not read until there is room.
        var paused: Set<UInt64> = []
        /// The connections that have rings.
        var rings: Set<UInt64> = []

        var isEmpty: Bool { connections == 0 && bytes == 0 && descriptors == 0 }

        func isOver(_ limits: PeerLimits) -> Bool {
            bytes >= limits.queuedBytes || descriptors >= limits.queuedDescriptors
        }
    }

    /// How many connections of a process may have rings. A process of this library has one connection to a port, so the
    /// limit is for others.
    static let ringLimit = 8

    var limits = PeerLimits.standard
    private var accounts: [Int32: Account] = [:]
    /// Whose the connections are.
    private var owners: [UInt64: Int32] = [:]

    /// Whether nothing is counted.
    var isEmpty: Bool { accounts.isEmpty && owners.isEmpty }

    /// Counts a connection.
    ///
    /// - Parameters:
    ///   - key: the connection.
    ///   - process: its process.
    ///   - isLimited: whether it may be one too many.
    /// - Returns: false when the process has as many as it may: it is not counted then.
    mutating func connect(_ key: UInt64, of process: Int32, isLimited: Bool = true) -> Bool {
        if isLimited, accounts[process]?.connections ?? 0 >= limits.connections { return false }
        accounts[process, default: Account()].connections += 1
        owners[key] = process
        return true
    }

    /// A connection has ended; one that was not counted changes nothing.
    mutating func disconnect(_ key: UInt64) {
        guard let process = owners.removeValue(forKey: key) else { return }
        change(process) { account in
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
    func isOver(_ process: Int32) -> Bool { accounts[process]?.isOver(limits) ?? false }

    /// Notes a connection as paused, if its process is over its limits.
    ///
    /// - Returns: whether it is.
    mutating func pause(_ key: UInt64) -> Bool {
        guard let process = owners[key], isOver(process) else { return false }
        accounts[process]?.paused.insert(key)
        return true
    }

    mutating func take(bytes: Int, descriptors: Int, by process: Int32) {
        accounts[process, default: Account()].bytes += bytes
        accounts[process, default: Account()].descriptors += descriptors
    }

    /// - Returns: whether connections that were paused may be read again: `takeResumable` tells which.
    mutating func giveBack(bytes: Int, descriptors: Int, by process: Int32) -> Bool {
        let limits = limits
        var mayResume = false
        change(process) { account in
            account.bytes -= bytes
            account.descriptors -= descriptors
            mayResume = !account.paused.isEmpty && !account.isOver(limits)
        }
        return mayResume
    }

    /// The connections that were paused and may be read again; they are not paused any more.
    mutating func takeResumable() -> Set<UInt64> {
        var resumed: Set<UInt64> = []
        for (process, account) in accounts where !account.paused.isEmpty && !account.isOver(limits) {
            resumed.formUnion(account.paused)
            accounts[process]?.paused = []
        }
        return resumed
    }

    private mutating func change(_ process: Int32, _ body: (inout Account) -> Void) {
        guard var account = accounts[process] else { return }
        body(&account)
        accounts[process] = account.isEmpty ? nil : account
    }
}
