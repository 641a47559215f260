// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

// What counts a port's senders: `SenderCount` and `PresencePipes` decide, this does it.
extension LocalPort {
    /// A right that has come back counts as one of this process; the end that came with it is not retained, unless the port
    /// has left.
    package func makePresence(with end: ReceivedEnd? = nil) -> (any SenderPresence)? {
        if isInherited { return nil }
        let isCounted = state.withLock { state in
            if state.mailbox.isDead, !state.hasLeft { return false }
            state.senders.rightWasMade()
            return true
        }
        guard isCounted else { return nil }
        if let end { retain(end) }
        return CountedRight(self)
    }

    func rightDidEnd() {
        if isInherited { return }
        var unused: SendRight?  // released without the lock
        changeSenders { state in
            state.senders.rightDidEnd()
            unused = state.removeUnusedSuccessor()
        }
        withExtendedLifetime(unused) {}
    }

    /// Begins an accept. Between the backlog and the count a client would be seen in neither.
    func willAccept() {
        state.withLock { $0.senders.willAccept() }
    }

    /// Ends an accept: the client is counted, or there was none.
    func didAccept(foundNone: Bool = false) {
        changeSenders { $0.senders.didAccept(foundNone: foundNone) }
    }

    /// Counts a client that has connected, until `clientDidNotConnect` or `clientDidDisconnect`.
    func clientDidConnect() {
        state.withLock { $0.senders.clientDidConnect() }
    }

    func clientDidNotConnect() {
        changeSenders { $0.senders.clientDidNotConnect() }
    }

    func clientDidDisconnect() {
        changeSenders { $0.senders.clientDidDisconnect() }
    }

    // MARK: Pipes

    func addPipe(_ key: UInt64) {
        // A port that has ended counts nothing, and has dropped that state.
        state.withLock { if !$0.mailbox.isDead { $0.coldState.pipes.add(key: key) } }
    }

    func pipeDidHangUp(_ key: UInt64) {
        changeSenders { state in
            if state.hasColdState, state.coldState.pipes.didHangUp(key) { state.senders.pipeDidHangUp() }
        }
    }

    package func export(_ presence: (any SenderPresence)?) throws(PortError) -> SharedDescriptor? {
        switch state.withLock({ $0.hasColdState ? $0.coldState.pipes.export : .address }) {
        case .address: return nil
        case .end(let end): return end
        case .newPipe: return try openPipe()
        }
    }

    package var exportsEnds: Bool {
        state.withLock { state in
            guard state.hasColdState, !state.mailbox.isDead else { return false }
            if case .address = state.coldState.pipes.export { return false }
            return true
        }
    }

    /// Makes a pipe, which the sockets watch.
    ///
    /// - Returns: the end that travels; that of another pipe if a thread was faster.
    private func openPipe() throws(PortError) -> SharedDescriptor? {
        let sockets = try openSockets()
        let pipe = try PortError.converting(PresencePipe())
        let key = sockets.makeReadEndKey()
        try sockets.watch(PipeEnd(pipe.reading), key: key)
        let end = state.withLock { state in
            state.mailbox.isDead ? nil : state.coldState.pipes.open(pipe.writing, key: key)
        }
        if end !== pipe.writing { sockets.unwatch(readEnd: key) }
        return end
    }

    // MARK: Notices

    /// Delivers the notice once, when no senders are left: at once when they have gone, never when the port ends first.
    /// From the first notice on, rights leave this process with the ends of pipes.
    func awaitNoSenders(_ notice: LoopNotification<Void>) throws(PortError) {
        try checkProcess()
        if isDead { throw PortError(.invalidPort).at(label) }
        var isPacked = false
        changeSenders { state in
            // What leaves now is counted only as the next owner counts.
            isPacked = state.senders.isPacked
            if isPacked { return }
            state.coldState.pipes.beginCounting()
            state.senders.noticeWasRequested()
            state.coldState.senderNotices.removeAll { $0.isOver }
            state.coldState.senderNotices.append(notice)
        }
        if isPacked { throw PortError(.invalidPort, subject: .reason(.beingMoved)).at(label) }
        // The port may have ended since, after `die` cancelled its notices.
        guard isDead else { return }
        for late in state.withLock({ $0.removeSenderNotices() }) { late.cancel() }
    }

    /// Applies a change of the senders; while a notice waits, does what is next.
    func changeSenders(_ body: (inout State) -> Void) {
        let (verdict, due) = decide(body)
        switch verdict {
        case .wait: break
        case .release(let end): withExtendedLifetime(end) {}  // closed here, without the lock
        case .accept: checkBacklog()
        case .notify: for notice in due { notice.notify() }
        }
    }

    private func decide(_ body: (inout State) -> Void) -> (
        SenderCount.Verdict<SharedDescriptor>, [LoopNotification<Void>]
    ) {
        state.withLock { state in
            body(&state)
            guard state.hasColdState, !state.coldState.senderNotices.isEmpty else { return (.wait, []) }
            let hasAddress = state.coldState.address != nil
            let verdict = state.senders.verdict(
                &state.coldState.pipes, hasAddress: hasAddress, isListening: hasAddress)
            guard case .notify = verdict else { return (verdict, []) }
            return (verdict, state.removeSenderNotices())
        }
    }

    /// Finds out whether a client waits to be accepted: a sender that has ended may have connected before.
    private func checkBacklog() {
        while true {
            willAccept()
            let foundNone = sockets?.hasWaitingClient != true
            let (verdict, due) = decide { $0.senders.didAccept(foundNone: foundNone) }
            guard case .accept = verdict else {
                // The verdict is final: no sender is left.
                for notice in due { notice.notify() }
                return
            }
            // A client that still waits is accepted, or refused, by what polls the sockets: that decides again. If none
            // does, another thread has accepted what was found here, or a sender has ended meanwhile.
            if sockets?.hasWaitingClient == true { return }
        }
    }
}

extension LocalPort.State {
    fileprivate mutating func removeSenderNotices() -> [LoopNotification<Void>] {
        if !hasColdState { return [] }
        defer { coldState.senderNotices = [] }
        return coldState.senderNotices
    }
}
