// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A sender of another process that waits in line for a slot of a port's queue.
final class CreditRequest: Sendable {
    /// The number of the connection for whose messages it waits.
    let key: UInt64  // immutable
    /// The connection over which it has asked.
    let connection: SocketConnection  // immutable
    /// How many slots its process may take.
    let share: Int  // immutable
    private let grant: CreditGrant  // immutable

    init(_ key: UInt64, _ grant: CreditGrant, share: Int, over connection: SocketConnection) {
        (self.key, self.grant, self.share, self.connection) = (key, grant, share, connection)
    }

    /// Notifies the sender, which has got a slot. That of a port that has ended finds the connection closed.
    func wake() { connection.enqueue(OutgoingPacket(.granted(grant), to: key)) }
}
