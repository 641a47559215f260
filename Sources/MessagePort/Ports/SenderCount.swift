// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port knows whether a right to it is left. A send right that this process makes to one of its ports has an
// object, which its copies share; the port counts these objects. Clients of other processes are counted by their
// connections. Together they do what Mach's make-send count does: a notice covers the senders that there were, not
// later ones.
//
// One object for all rights would need a weak reference to it, whose side table takes more memory than the object.

/// A right, with its copies, that the port has counted.
final class CountedRight: Sendable {
    private let port: LocalPort  // immutable

    init(_ port: LocalPort) {
        self.port = port
    }

    deinit {
        port.rightDidEnd()
    }
}

/// Whether a port has senders: decides, does nothing else.
struct SenderCount: Sendable {
    /// How many rights of this process there are, without their copies. Each takes memory, so four bytes suffice.
    private var rightCount: UInt32 = 0
    /// How many processes are connected, without watchers.
    private(set) var clientCount: Int32 = 0
    /// How many threads are accepting, each perhaps another process.
    private var acceptingCount: UInt16 = 0
    private var hasHadRights = false
    private var hasHadClients = false

    mutating func rightWasMade() {
        rightCount += 1
        hasHadRights = true
    }

    /// The last copy of a right of this process was released.
    mutating func rightDidEnd() {
        rightCount -= 1
    }

    /// A client may be about to be accepted: until `didAccept` no notice is due.
    mutating func willAccept() {
        acceptingCount += 1
    }

    mutating func didAccept() {
        acceptingCount -= 1
    }

    mutating func clientDidConnect() {
        clientCount += 1
    }

    /// No client came, or only a watcher.
    mutating func clientDidNotConnect() {
        clientCount -= 1
    }

    mutating func clientDidDisconnect() {
        hasHadClients = true
        clientDidNotConnect()
    }

    /// Whether there were senders, and none is left. A port with an address to which no client has connected yet waits
    /// for the first: another process was given the address.
    func haveAllEnded(hasAddress: Bool) -> Bool {
        rightCount == 0 && clientCount == 0 && acceptingCount == 0
            && (hasAddress ? hasHadClients : hasHadRights || hasHadClients)
    }
}
