// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// How many packets may be read from a port's sockets for one dequeued message: one limit for all connections together,
/// one for those of a process, and one for each connection. Packets beyond them stay in the sockets.
struct ReceiveBudget {
    /// For a port that reads while its queue has room.
    static let standard = ReceiveBudget(Tuning.standardBudget)
    /// For a port whose policy chooses among all that has arrived: more than a socket holds.
    static let choosing = ReceiveBudget(Tuning.choosingBudget)

    private var left: Int
    private let share: Int  // immutable
    private let most: Int  // immutable
    /// The process that was read from last, which is usually the only one, and how many packets were read from it.
    private var last: (owner: PeerID, count: Int)?
    /// How many were read from the others; the entry of the last one is stale.
    private var used: [PeerID: Int] = [:]

    private init(_ limits: (packets: Int, ofProcess: Int, ofConnection: Int)) {
        (left, share, most) = limits
    }

    /// Whether nothing more may be read.
    var isSpent: Bool { left <= 0 }

    /// How many packets may be read from a connection of the process now.
    func grant(to owner: PeerID) -> Int {
        max(0, min(most, left, share - count(of: owner)))
    }

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
