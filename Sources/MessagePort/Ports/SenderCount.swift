// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port knows whether a right to it is left. A send right that this process makes to one of its ports has an
// object, which its copies share; the port counts these objects. Clients of other processes are counted by their
// connections, and rights that no process has used yet by the pipes whose ends travel with them (`PresencePipes`).
// Together they do what Mach's make-send count does: a notice covers the senders that there were, not later ones.
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
///
/// A sender may become one of another kind: a right that comes back is one of this process, and one that is used becomes
/// a connection. The new one is counted, or waits in the listen backlog, before the old one ends. So it is enough that
/// the backlog is found empty after the last of the others has ended.
struct SenderCount: Hashable, Sendable {
    /// What is to be done where no sender is counted.
    enum Verdict<End: Sendable>: Sendable {
        /// Nothing: there are senders, or there was none yet.
        case wait
        /// Release the port's own end of a pipe: the kernel then reports when the last of the others is gone.
        case release(End)
        /// Accept the clients that wait, until there is none.
        case accept
        /// Deliver the notices: there were senders, and none is left.
        case notify
    }

    /// How many rights of this process there are, without their copies. Each takes memory, so four bytes suffice.
    private var rightCount: UInt32 = 0
    /// How many processes are connected, without those that only observe.
    private(set) var clientCount: Int32 = 0
    /// How many threads are accepting, each perhaps another process.
    private var acceptingCount: UInt16 = 0
    private var hasHadRights = false
    /// Whether another process had a right.
    private var hasHadClients = false
    /// Whether a sender has ended since the listen backlog was last found empty.
    private var mustAccept = false
    /// Whether a sender has ended since threads began to accept: what they find may be older.
    private var isAcceptOutdated = false
    /// Whether nothing is decided, because the port is packed for another process.
    private(set) var isPacked = false

    /// Whether a client may be about to be accepted.
    var isAccepting: Bool { acceptingCount > 0 }

    /// Whether this process has rights.
    var hasRights: Bool { rightCount > 0 }

    mutating func rightWasMade() {
        rightCount += 1
        hasHadRights = true
    }

    /// The last copy of a right of this process was released.
    mutating func rightDidEnd() {
        rightCount -= 1
        senderDidEnd()
    }

    /// The last end of a pipe that travelled with rights is gone.
    mutating func pipeDidHangUp() {
        hasHadClients = true
        senderDidEnd()
    }

    /// A notice was asked for: a client that waits to be accepted now is a sender.
    mutating func noticeWasRequested() { senderDidEnd() }

    private mutating func senderDidEnd() {
        mustAccept = true
        if acceptingCount > 0 { isAcceptOutdated = true }
    }

    /// A client may be about to be accepted: until `didAccept` no notice is due.
    mutating func willAccept() {
        acceptingCount += 1
    }

    /// Ends an accept.
    ///
    /// - Parameter foundNone: whether no client waited any more.
    mutating func didAccept(foundNone: Bool = false) {
        acceptingCount -= 1
        if foundNone, !isAcceptOutdated { mustAccept = false }
        if acceptingCount == 0 { isAcceptOutdated = false }
    }

    mutating func clientDidConnect() {
        clientCount += 1
    }

    /// No client came, or one that only observes.
    mutating func clientDidNotConnect() {
        clientCount -= 1
    }

    mutating func clientDidDisconnect() {
        hasHadClients = true
        clientDidNotConnect()
        senderDidEnd()
    }

    // MARK: Moving

    /// The port gets an address only because it moves, and counts: each right that has left this process is counted.
    mutating func willGetAddress() { if hasHadRights { hasHadClients = true } }

    /// From now on the next owner decides, unless `unpack` is called.
    ///
    /// - Returns: whether another process had a right.
    mutating func pack() -> Bool {
        isPacked = true
        return hasHadClients
    }

    /// The port stays.
    mutating func unpack() { isPacked = false }

    /// Continues the count of another process.
    mutating func resume(hasHadClients: Bool) { if hasHadClients { self.hasHadClients = true } }

    /// Decides what is next, after each change while a notice waits. A port with an address to which no other process has
    /// had a right yet waits for the first: another process was given the address.
    func verdict<End>(_ pipes: inout PresencePipes<End>, hasAddress: Bool, isListening: Bool) -> Verdict<End> {
        if isPacked || rightCount > 0 || clientCount > 0 || acceptingCount > 0 || pipes.isAwaitingEnds { return .wait }
        if let end = pipes.release() { return .release(end) }
        guard hasAddress ? hasHadClients : hasHadRights || hasHadClients else { return .wait }
        return isListening && mustAccept ? .accept : .notify
    }
}
