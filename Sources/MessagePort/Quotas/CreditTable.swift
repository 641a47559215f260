// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How many messages each connection of a port may send: decides, and writes the grants where the clients read them.
//
// A port grants the free slots of its queue to connections before they send, so that a sender of another process knows
// whether there is room. Counts are of all messages since the account began. A granted slot is free until its message has
// come; it counts as taken all the same (`outstanding`). The port takes back what a connection has not used when another
// sender needs it: a message that is sent at that moment exceeds the grant, at most one for each connection. Connections that
// have asked share the queue: each is granted its portion, and what is taken back for others is first what exceeds that.
// So clients that send by turns do not ask for each message.

/// The account of the connection over which a message came.
struct ReceivedCredit: Sendable {
    let index: Int
    /// The number of the connection: another may have the index since.
    let key: UInt64
}

/// The grants of a port's connections.
struct CreditTable: Sendable {
    private struct Account: Sendable {
        /// The connection's number; zero when the account has ended.
        var key: UInt64 = 0
        var received: UInt64 = 0
        var granted: UInt64 = 0
        /// How many slots senders have waited for and not used: they are not taken back.
        var awaited: Int32 = 0
        /// Whether the client sees its grants: it has asked.
        var isShared = false
        /// Whether something was received or granted since the last check for progress.
        var hasChanged = false

        /// How many slots are granted and not used, as far as the port has received.
        var outstanding: Int { Int(clamping: granted - received) }

        /// Counts messages.
        ///
        /// - Returns: how many slots were not used before.
        mutating func receive(_ count: Int) -> Int {
            let unused = outstanding
            received &+= UInt64(count)
            if count > 0 { hasChanged = true }
            if awaited > 0 { awaited -= Int32(min(Int(awaited), count)) }
            return unused
        }
    }

    /// The owner of an account, and what the client has sent; nil before it has asked.
    private struct AccountEntry: Sendable {
        let owner: PeerID
        var sent: SharedWord?
    }

    // By their indices.
    private var accounts: [Account] = []
    private var entries: [AccountEntry?] = []
    private var indices: [UInt64: Int] = [:]
    /// How many slots are granted, and their messages have not come.
    private(set) var outstanding = 0
    /// The index of the connection over which messages came last, if it may send no more; otherwise -1.
    private var exhaustedIndex = -1
    /// How many connections have asked.
    private var sharing = 0
    /// How many slots were granted since portions were checked.
    private var grantedSinceCheck = 0
    /// The binary logarithm of the number of portions.
    private var portionShift = 0
    /// Where the clients read the grants; set before the first is given.
    var page: GrantPage?

    /// Begins the account of a connection, under the number that its client has chosen.
    ///
    /// - Returns: its index; nil when the number is another connection's.
    mutating func open(_ key: UInt64, of owner: PeerID) -> Int? {
        if indices[key] != nil { return nil }
        let index = entries.firstIndex { $0 == nil } ?? entries.count
        if index == entries.count {
            accounts.append(Account())
            entries.append(nil)
        }
        accounts[index] = Account(key: key)
        entries[index] = AccountEntry(owner: owner)
        indices[key] = index
        return index
    }

    /// Ends an account, with what it has not used.
    ///
    /// - Returns: what the client had sent, to be released without the lock, and whether the account had not ended.
    mutating func close(_ key: UInt64) -> (sent: SharedWord?, isClosed: Bool) {
        guard let index = indices.removeValue(forKey: key) else { return (nil, false) }
        outstanding -= accounts[index].outstanding
        accounts[index] = Account()
        if exhaustedIndex == index { exhaustedIndex = -1 }
        let sent = entries[index]?.sent
        entries[index] = nil
        if sent != nil { setSharing(sharing - 1) }
        return (sent, true)
    }

    private mutating func setSharing(_ count: Int) {
        sharing = count
        portionShift = Int.bitWidth - max(0, count - 1).leadingZeroBitCount
    }

    /// How many slots a connection may have unused while others need some.
    func portion(of limit: Int) -> Int { max(1, limit >> portionShift) }

    /// Whether connections may have more than their portions unused. It is checked once for each batch that is granted: what
    /// is on its way counts, too, and the connections are many.
    func mayExceedPortions(of limit: Int) -> Bool {
        sharing > 1 && grantedSinceCheck >= batch(of: limit) && outstanding > sharing * portion(of: limit)
    }

    /// How many slots are granted at once, where there are as many.
    func batch(of limit: Int) -> Int { max(1, limit >> min(portionShift, Tuning.grantedBatchShift)) }

    func index(of key: UInt64) -> Int? { indices[key] }

    func owner(of key: UInt64) -> PeerID? { indices[key].flatMap { entries[$0]?.owner } }

    /// Sets what the two sides see, unless it is known.
    ///
    /// - Returns: whether it is known now.
    mutating func share(_ index: Int, _ sent: SharedWord?) -> Bool {
        if entries[index]?.sent != nil { return true }
        guard let sent, let granted = page?.word(at: index) else { return false }
        granted.store(accounts[index].granted)
        entries[index]?.sent = sent
        accounts[index].isShared = true
        setSharing(sharing + 1)
        return true
    }

    /// How many messages the client has sent within a grant of its account; it may say anything.
    private func sentCount(in account: Account, _ index: Int) -> UInt64 {
        min(max(entries[index]?.sent?.load() ?? account.granted, account.received), account.granted)
    }

    /// Whether the connection may send a message.
    func maySend(_ index: Int) -> Bool { accounts[index].granted > sentCount(in: accounts[index], index) }

    /// How many messages are on their way over the connection.
    func onTheirWay(_ index: Int) -> Int {
        Int(clamping: sentCount(in: accounts[index], index) - accounts[index].received)
    }

    /// The same over all connections.
    var onTheirWay: Int { accounts.indices.reduce(0) { $0 + onTheirWay($1) } }

    /// The owner of an account that has not ended.
    func owner(of credit: ReceivedCredit) -> PeerID? { isOpen(credit) ? entries[credit.index]?.owner : nil }

    private func isOpen(_ credit: ReceivedCredit) -> Bool {
        credit.index < accounts.count && accounts[credit.index].key == credit.key
    }

    /// - Returns: how many messages may still come over the connection; very many when it has ended, or was granted none.
    @discardableResult
    mutating func didReceive(_ count: Int, over credit: ReceivedCredit) -> Int {
        if !isOpen(credit) { return .max }
        let index = credit.index
        let unused = accounts[index].receive(count)
        outstanding -= min(unused, count)
        if count > unused { setGrant(accounts[index].received, index) }
        if !accounts[index].isShared { return .max }
        exhaustedIndex = count >= unused ? index : -1
        return max(0, unused - count)
    }

    /// Whether the connection over which messages came last may send no more.
    var hasExhausted: Bool { exhaustedIndex >= 0 }

    /// Forgets that.
    mutating func removeExhausted() -> (index: Int, owner: PeerID)? {
        defer { exhaustedIndex = -1 }
        return exhaustedIndex < 0 ? nil : entries[exhaustedIndex].map { (exhaustedIndex, $0.owner) }
    }

    /// Grants a connection more slots: its portion, or half of what is free, if that is more. At most `share` are granted
    /// and not received.
    mutating func raise(_ index: Int, by free: Int, atMost share: Int, portion: Int) {
        // What the client cannot see it could not use, nor give back.
        if entries[index]?.sent == nil { return }
        let unused = accounts[index].outstanding - onTheirWay(index)
        let more = min(free, share - accounts[index].outstanding, max(portion, free / 2) - unused)
        if more <= 0 { return }
        setGrant(accounts[index].granted &+ UInt64(more), index)
        outstanding += more
        grantedSinceCheck += more
    }

    /// Grants a connection whose sender has waited another slot.
    mutating func grantAwaited(_ index: Int) {
        accounts[index].awaited += 1
        setGrant(accounts[index].granted &+ 1, index)
        outstanding += 1
    }

    /// A sender that had waited has used its slot, or has given up: it may be taken back.
    mutating func endAwaited(_ index: Int) { if accounts[index].awaited > 0 { accounts[index].awaited -= 1 } }

    /// Takes back what connections have not used, except for one, and except for a portion of each.
    ///
    /// - Returns: whether there was something.
    mutating func takeBack(besides exception: Int? = nil, leaving portion: Int = 0) -> Bool {
        let before = outstanding
        grantedSinceCheck = 0
        if before == 0 { return false }
        // Only these may have something: the page has no words for others.
        for index in accounts.indices.prefix(GrantPage.count) where index != exception {
            let account = accounts[index]
            let rest = max(Int(account.awaited), portion)
            if account.outstanding <= rest || entries[index]?.sent == nil { continue }
            // No sender begins another message now: what it has sent is final, but for one that it had begun.
            setGrant(min(account.granted, sentCount(in: account, index) &+ UInt64(rest)), index)
            setGrant(min(account.granted, sentCount(in: account, index) &+ UInt64(rest)), index)
            outstanding += accounts[index].outstanding - account.outstanding
        }
        return outstanding < before
    }

    /// Takes back what connections were granted before the last check, and have neither used nor sent since: of a client
    /// that is stopped, that the port does not read, or that says what is not so. What comes over them later exceeds their
    /// grants.
    mutating func takeBackStalled() {
        for index in accounts.indices {
            let account = accounts[index]
            if account.outstanding > 0, !account.hasChanged {
                accounts[index].awaited = 0
                setGrant(account.received, index)
                outstanding -= account.outstanding
            }
            accounts[index].hasChanged = false
        }
    }

    private mutating func setGrant(_ granted: UInt64, _ index: Int) {
        if accounts[index].granted != granted { accounts[index].hasChanged = true }
        accounts[index].granted = granted
        if accounts[index].isShared { page?.word(at: index)?.store(granted) }
    }
}
