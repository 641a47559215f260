// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

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

    /// A right of this process has gone, and all its copies.
    func rightDidGo() {
        if isInherited { return }
        changeSenders { $0.rightDidGo() }
    }

    /// A client may be about to be accepted. Between the backlog and the count it would be seen in neither.
    func willAccept() {
        state.withLock { $0.senders.willAccept() }
    }

    /// It is counted now, or there is none.
    func didAccept() {
        changeSenders { $0.didAccept() }
    }

    /// A client has connected: it counts as one until `clientDidNotCome`, or `clientDidGo`.
    func clientMayCome() {
        state.withLock { $0.senders.clientMayCome() }
    }

    /// None came, or only somebody who looks on.
    func clientDidNotCome() {
        changeSenders { $0.clientDidNotCome() }
    }

    /// A client's connection has ended.
    func clientDidGo() {
        changeSenders { $0.clientDidGo() }
    }

    /// Tells the notice once, when there are no senders any more; soon when they have gone already, never when the port ends
    /// first.
    func watchSenders(_ notice: LoopNotification<Void>) throws(PortError) {
        try checkProcess()
        if isDead { throw PortError(.invalidPort).at(label) }
        let isDue = state.withLock { state in
            if state.sendersHaveGone { return true }
            state.extras.senderNotices.removeAll { $0.isOver }
            state.extras.senderNotices.append(notice)
            return false
        }
        if isDue { return notice.tell() }
        // It may have ended since, with nobody there to cancel the notice.
        guard isDead else { return }
        for late in state.withLock({ $0.takeSenderNotices() }) { late.cancel() }
    }

    /// Fewer senders are left: tells who wants to know, when there is none.
    private func changeSenders(_ body: (inout SenderTally) -> Void) {
        let due = state.withLock { state in
            body(&state.senders)
            return state.hasExtras && state.sendersHaveGone ? state.takeSenderNotices() : []
        }
        for notice in due { notice.tell() }
    }
}

extension LocalPort.State {
    fileprivate var sendersHaveGone: Bool {
        senders.haveGone(hasAddress: hasExtras && extras.address != nil)
    }

    fileprivate mutating func takeSenderNotices() -> [LoopNotification<Void>] {
        if !hasExtras { return [] }
        defer { extras.senderNotices = [] }
        return extras.senderNotices
    }
}
