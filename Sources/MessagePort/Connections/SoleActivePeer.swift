// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Which of a port's connections is read without asking the kernel for the others: decides, does nothing else.
///
/// Mostly one peer talks at a time, and waits for an answer before it sends more. When two polls of all sockets in a
/// row have found one packet of one connection and nothing else, the next polls read one packet from it alone: each
/// saves two system calls. Whatever else comes waits for the next poll of all sockets: every eighth one, and the one
/// after a poll of that connection that found nothing.
struct SoleActivePeer: Sendable {
    /// What the last poll of all sockets has found alone.
    private var connection: SocketConnection?
    /// How often it is polled alone before all are polled again; zero unless the last two such polls have found it.
    private var pollsLeft = 0

    init() {}

    /// The connection to poll alone; nil to poll all sockets.
    mutating func next() -> SocketConnection? {
        guard pollsLeft > 0 else { return nil }
        pollsLeft -= 1
        return connection
    }

    /// A poll of the connection alone has found nothing.
    mutating func didFindNothing() { self = SoleActivePeer() }

    /// A poll of all sockets has found one packet of this connection and nothing else; nil: something else.
    mutating func didPoll(found: SocketConnection?) {
        guard let found else { return didFindNothing() }
        if found === connection {
            pollsLeft = Tuning.solePollLimit
        } else {
            (connection, pollsLeft) = (found, 0)
        }
    }

    /// A connection was removed from the set.
    mutating func forget(_ other: SocketConnection) {
        if connection === other { didFindNothing() }
    }
}
