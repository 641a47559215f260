// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port knows whether a right to it is left. A send right that this process makes to one of its ports has an
// object, which its copies share; the port counts these objects. Clients of other processes are counted by their
// connections. Together they do what Mach's make-send count does: a notice covers the senders that there were, not
// later ones.
//
// One object for all rights would need a weak reference to it, whose side table takes more memory than the object.

import RunLoopCore

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
    /// How many processes are connected, without those that only observe.
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

    /// No client came, or one that only observes.
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

extension LocalPort {
    package func makePresence() -> (any SenderPresence)? {
        if isInherited { return nil }
        let isCounted = state.withLock { state in
            if state.mailbox.isDead { return false }
            state.senders.rightWasMade()
            return true
        }
        return isCounted ? CountedRight(self) : nil
    }

    func rightDidEnd() {
        if isInherited { return }
        changeSenders { $0.rightDidEnd() }
    }

    /// Begins an accept. Between the backlog and the count a client would be seen in neither.
    func willAccept() {
        state.withLock { $0.senders.willAccept() }
    }

    /// Ends an accept: the client is counted, or there was none.
    func didAccept() {
        changeSenders { $0.didAccept() }
    }

    /// Counts a client that has connected, until `clientDidNotConnect` or `clientDidDisconnect`.
    func clientDidConnect() {
        state.withLock { $0.senders.clientDidConnect() }
    }

    func clientDidNotConnect() {
        changeSenders { $0.clientDidNotConnect() }
    }

    func clientDidDisconnect() {
        changeSenders { $0.clientDidDisconnect() }
    }

    /// Delivers the notice once, when no senders are left: at once when they have gone, never when the port ends first.
    func awaitNoSenders(_ notice: LoopNotification<Void>) throws(PortError) {
        try checkProcess()
        if isDead { throw PortError(.invalidPort).at(label) }
        let isDue = state.withLock { state in
            if state.haveSendersEnded { return true }
            state.coldState.senderNotices.removeAll { $0.isOver }
            state.coldState.senderNotices.append(notice)
            return false
        }
        if isDue { return notice.notify() }
        // The port may have ended since, after `die` cancelled its notices.
        guard isDead else { return }
        for late in state.withLock({ $0.removeSenderNotices() }) { late.cancel() }
    }

    /// Applies a change of the count; delivers the no-senders notices when no sender is left.
    private func changeSenders(_ body: (inout SenderCount) -> Void) {
        let due = state.withLock { state in
            body(&state.senders)
            return state.hasColdState && state.haveSendersEnded ? state.removeSenderNotices() : []
        }
        for notice in due { notice.notify() }
    }
}

extension LocalPort.State {
    fileprivate var haveSendersEnded: Bool {
        senders.haveAllEnded(hasAddress: hasColdState && coldState.address != nil)
    }

    fileprivate mutating func removeSenderNotices() -> [LoopNotification<Void>] {
        if !hasColdState { return [] }
        defer { coldState.senderNotices = [] }
        return coldState.senderNotices
    }
}
