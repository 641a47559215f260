// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Which of a port's connections is read from without asking the kernel for the others: decides, does nothing else.
///
/// Mostly one peer talks at a time, and waits for an answer before it says more. When two looks in a row at all
/// sockets have found one packet of one connection and nothing else, the next looks read one packet from it alone: two
/// system calls less for each. Whatever else comes waits for the next look at all: each eighth is one, and so is one
/// that follows a look at that connection which found nothing.
struct SoleActivePeer: Sendable {
    /// So many looks at it alone follow each other at most.
    static let looksAlone = 7

    private var connection: SocketConnection?
    /// Whether the last two looks at all have found it alone.
    private var isProven = false
    private var looksLeft = 0

    /// The connection that the next look is at, alone; nil when it is to be at all.
    mutating func next() -> SocketConnection? {
        if !isProven || looksLeft == 0 { return nil }
        looksLeft -= 1
        return connection
    }

    /// A look at it alone has found nothing.
    mutating func wasNotThere() {
        self = SoleActivePeer()
    }

    /// A look at all has found one packet of this connection and nothing else; nil: something else.
    mutating func didLook(found: SocketConnection?) {
        isProven = found != nil && found === connection
        connection = found
        looksLeft = Self.looksAlone
    }

    /// A connection is listened to no more.
    mutating func forget(_ other: SocketConnection) {
        if connection === other { wasNotThere() }
    }
}
