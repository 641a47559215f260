// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// The port's side of the flow control between processes: see `CreditTable`. Grants are raised where messages are received
// and dequeued, and where a sender asks; those that wait are served in line with the senders of this process.
extension LocalPort {
    func openCredit(_ key: UInt64, of owner: PeerID) -> Int? {
        let (index, early) = state.withLock { $0.mailbox.openCredit(key, of: owner) }
        for early in early {
            let answer = ask(early.question, early.sentCount, over: early.connection, isLast: true)
            send(answer, to: early.question, over: early.connection, unlessWaiting: early.isWaiting)
            if answer.lacksRoom { checkCredits() }
        }
        return index
    }

    func endCredit(of connection: SocketConnection) {
        let (key, asked) = (connection.receiver.credit.account?.key, connection.receiver.credit.askedKey)
        if key == nil, asked == nil { return }
        var (ended, early): ([SocketConnection], [EarlyQuestion]) = ([], [])
        var sent: SharedWord?
        change { mailbox in
            if let key { (ended, sent) = mailbox.closeCredit(key) }
            if let asked { early = mailbox.endQuestion(for: asked, over: connection) }
            return mailbox.admitSenders()
        }
        // The senders that wait for the other connection find that it is closed.
        for query in ended { query.close(PortError(.peerDied)) }
        withExtendedLifetime((early, sent)) {}  // released without the lock
    }

    func didReceiveUnqueued(_ credit: ReceivedCredit) {
        state.withLock { $0.didReceiveOne(credit) }
        change { $0.admitSenders() }
    }

    func answer(_ question: CreditQuestion, over connection: SocketConnection) {
        if question.purpose == .reading || question.purpose == .probing {
            sockets?.receiveArrivals(besides: connection, exceedingLimit: question.purpose == .probing)
            return send(.received, to: question, over: connection)
        }
        let sentCount = question.sentCount.flatMap { (try? SentCount.map($0)) ?? nil }
        if sentCount != nil { makeGrantPage() }
        var answer = ask(question, sentCount, over: connection, isLast: false)
        if answer.mayChangeByReceiving, sockets?.isFormer(question.key) == true {
            // It was counted at another process, which its client has not read yet.
            return send(.refused, to: question, over: connection)
        }
        // What was sent may be the number of its connection; or the policy drops older messages for newer ones.
        if answer.mayChangeByReceiving || readsAhead && !answer.isGrant {
            sockets?.receiveArrivals(besides: connection)
            answer = ask(question, sentCount, over: connection, isLast: true)
        }
        send(answer, to: question, over: connection)
        if answer.lacksRoom { checkCredits() }
    }

    /// An unknown number is answered when it comes. That a sender waits is said once.
    private func send(
        _ answer: CreditAnswer, to question: CreditQuestion, over connection: SocketConnection,
        unlessWaiting isKnown: Bool = false
    ) {
        let isSaid = if case .waiting = answer { isKnown } else { answer.mayChangeByReceiving }
        if !isSaid { connection.enqueue(OutgoingPacket(answer, to: question.key)) }
        // Its end may have been handled before it was in line.
        if connection.isClosed { endCredit(of: connection) }
    }

    private func ask(
        _ question: CreditQuestion, _ sentCount: SharedWord?, over connection: SocketConnection, isLast: Bool
    ) -> CreditAnswer {
        state.withLock { state in
            let share = state.mailbox.creditOwner(for: question.key).map { state.share(of: $0) } ?? 0
            return state.mailbox.ask(question, sentCount, share: share, over: connection, isLast: isLast)
        }
    }

    /// Makes the memory for the grants, for the first client that asks, if there is some.
    private func makeGrantPage() {
        if state.withLock({ $0.mailbox.hasGrantPage }) { return }
        guard let made = try? GrantPage() else { return }
        state.withLock { $0.mailbox.useGrantPage(made) }
    }

    /// Grants what is free to the senders that wait, after a moment in which more may become free.
    func timeGrants() {
        guard let loop = IOThread.startedLoop else { return change { $0.endGrantTiming() } }
        loop.add(RunLoopTimer(after: Tuning.grantDelay) { [weak self] _ in self?.change { $0.endGrantTiming() } })
    }

    /// A sender lacks room because of what clients were granted: checks from time to time whether they use it.
    func checkCredits() {
        guard let loop = IOThread.startedLoop, state.withLock({ $0.mailbox.beginCreditCheck() }) else { return }
        checkCreditsLater(on: loop)
    }

    private func checkCreditsLater(on loop: ThreadRunLoop) {
        loop.add(
            RunLoopTimer(after: Tuning.creditCheckInterval) { [weak self] _ in
                guard let self else { return }
                // What they have sent counts as progress, also while the owner is busy.
                sockets?.receiveArrivals(besides: nil)
                var mustContinue = false
                change { mailbox in
                    mustContinue = mailbox.checkCredits()
                    return mailbox.admitSenders()
                }
                if mustContinue { checkCreditsLater(on: loop) }
            })
    }
}

extension LocalPort.State {
    /// How many slots the process may take.
    func share(of owner: PeerID) -> Int {
        openedSockets?.quotas.withLock { $0.allowance(of: owner).messages } ?? 0
    }

    /// A message has come over a connection.
    mutating func didReceiveOne(_ credit: ReceivedCredit) {
        if mailbox.didReceive(credit) { grantMore(to: credit) }
    }

    /// Grants a connection more that can send only few more messages.
    mutating func grantMore(to credit: ReceivedCredit) {
        if let owner = mailbox.ownerToGrant(credit) { mailbox.grantMore(credit.index, share: share(of: owner)) }
    }
}
