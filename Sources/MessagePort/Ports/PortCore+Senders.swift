// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension PortCore {
    package func makePresence() -> SenderPresence? {
        if isInherited { return nil }
        return state.withLock { $0.mailbox.isDead ? nil : $0.senders.makePresence(self) }
    }

    /// The last send right of this process has gone, unless one was made meanwhile.
    func sendersDidGo(_ number: UInt64) {
        if isInherited { return }
        tell { $0.senders.rightsDidGo(number, hasAddress: $0.extras.address != nil) }
    }

    /// A client may be about to be accepted. Between the backlog and the count it would be seen in neither.
    func willAccept() {
        state.withLock { $0.senders.willAccept() }
    }

    /// It is counted now, or there is none.
    func didAccept() {
        tell { $0.senders.didAccept(hasAddress: $0.extras.address != nil) }
    }

    /// A client has connected: it counts as one until `clientDidNotCome`, or `clientDidGo`.
    func clientMayCome() {
        state.withLock { $0.senders.clientMayCome() }
    }

    /// None came, or only somebody who looks on.
    func clientDidNotCome() {
        tell { $0.senders.clientDidNotCome(hasAddress: $0.extras.address != nil) }
    }

    /// A client's connection has ended.
    func clientDidGo() {
        tell { $0.senders.clientDidGo(hasAddress: $0.extras.address != nil) }
    }

    /// Tells the notice once, when there are no senders any more; soon when they have gone already, never when the port ends
    /// first.
    func watchSenders(_ notice: LoopNotice<Void>) throws(PortError) {
        try checkProcess()
        if isDead { throw PortError(.invalidPort).at(label) }
        tell { $0.senders.wait(notice, hasAddress: $0.extras.address != nil) ? [notice] : [] }
        // It may have ended since, with nobody there to cancel the notice.
        guard isDead else { return }
        for late in state.withLock({ $0.senders.takeAll() }) { late.cancel() }
    }

    private func tell(_ body: (inout State) -> [LoopNotice<Void>]) {
        for notice in state.withLock({ body(&$0) }) { notice.tell() }
    }
}
