// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What a connection is for the port's flow control: one whose messages are counted, or one over which a sender asks for
/// room. Changed under the lock of the receiver.
struct PeerCredit: ~Copyable, Sendable {
    /// One more than the index of the account of what the peer may send; zero before the connection has a number.
    private let accountNumber = Atomic<Int32>(0)

    /// How many numbers the peer may still choose: one, and another for each time that the port has moved.
    let renames = Atomic<Int32>(1)

    /// The connection's number, under which the account is; set before.
    private let accountKey = Atomic<UInt64>(0)
    /// What a sender has asked over this connection.
    private let asked = SetOnceReference<PendingQuestion>()

    /// The number that the connection had at another process, until it gets another; zero for none.
    let formerKey = Atomic<UInt64>(0)

    /// The peer is notified of a move, and chooses another number for it; one for all of which it reads at once. Called
    /// under the port's lock of moves, or for a connection that is not known to others yet.
    func allowRename() {
        let most = Int32(PortSnapshot.Connection.renameLimit)
        renames.store(min(renames.load(ordering: .relaxed) + 1, most), ordering: .relaxed)
    }

    /// The number under which the peer may ask.
    var key: UInt64 { account?.key ?? formerKey.load(ordering: .relaxed) }

    /// The account of what the peer may send; nil before the connection has a number.
    var account: ReceivedCredit? {
        let number = accountNumber.load(ordering: .relaxed)
        if number == 0 { return nil }
        return ReceivedCredit(index: Int(number - 1), key: accountKey.load(ordering: .relaxed))
    }

    /// The number of the connection for which a sender has asked over this one; nil when none has.
    var askedKey: UInt64? { asked.withObject { $0.key } }

    func didOpen(_ account: ReceivedCredit) {
        formerKey.store(0, ordering: .relaxed)
        accountKey.store(account.key, ordering: .relaxed)
        accountNumber.store(Int32(account.index + 1), ordering: .relaxed)
    }

    /// Its account is closed.
    func didClose() {
        accountNumber.store(0, ordering: .relaxed)
        accountKey.store(0, ordering: .relaxed)
    }

    /// Called once at most.
    func ask(_ question: CreditQuestion) { asked.set(PendingQuestion(question)) }

    func removeQuestion() -> CreditQuestion? { asked.withObject { $0.question.withLock { $0.take() } } ?? nil }
}

/// What a sender asks over a connection that is for this alone.
private final class PendingQuestion: Sendable {
    /// The number of the connection for which it asks.
    let key: UInt64  // immutable
    /// Until it is answered: that is done without the lock of the receiver.
    let question: Mutex<CreditQuestion?>

    init(_ question: CreditQuestion) {
        key = question.key
        self.question = Mutex(question)
    }
}

extension PacketReceiver {
    /// The connection has got the number under which the port counts its messages.
    ///
    /// - Returns: false when it had one, and the port has not moved since.
    func openCredit(_ key: UInt64, _ sink: (any MessageSink)?, over connection: SocketConnection) -> Bool {
        if !connection.isPortsEnd { return false }
        if credit.renames.load(ordering: .relaxed) <= 0 { return false }
        credit.renames.subtract(1, ordering: .relaxed)
        // The notice of a move has crossed with a number that was chosen before.
        if credit.account != nil {
            sink?.endCredit(of: connection)
            credit.didClose()
        }
        guard let index = sink?.openCredit(key, of: connection.owner) else { return true }
        credit.didOpen(ReceivedCredit(index: index, key: key))
        // Its end may have been handled before.
        if connection.isClosed { sink?.endCredit(of: connection) }
        return true
    }

    /// A sender asks over the connection, which is for this alone, and for one question.
    ///
    /// - Returns: false when it is not.
    func noteQuestion(
        _ question: CreditQuestion, _ sink: (any MessageSink)?, over connection: SocketConnection
    ) -> Bool {
        if !connection.isPortsEnd || connection.hasSentMessages || credit.askedKey != nil { return false }
        if let sink { connection.noteObserver(sink) }
        credit.ask(question)
        return true
    }

    /// A message for the port has come, and is not queued.
    func didReceiveUnqueued(_ sink: (any MessageSink)?) {
        if let account = credit.account { sink?.didReceiveUnqueued(account) }
    }
}

extension SocketConnection {
    /// Answers a sender that has asked for room over this connection. Not while messages are moved: that may follow.
    func answerQuestion() {
        if let question = receiver.credit.removeQuestion() { sink?.answer(question, over: self) }
    }
}
