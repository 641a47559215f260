// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What the port at the other end lets this end send: messages that answer nothing. The first needs no grant, nor does one
// while none of the earlier ones can be in the queue, because the last was a request and was answered: most clients never
// ask. Otherwise the port's grant counts, which is in memory that the port shares. A sender that has used it up asks over a
// connection of its own, which a thread of the port's process answers even while the owner is busy; a sender that waits
// waits there.

import PortSystem
import RunLoopCore
import Synchronization

/// What one end may send. Changed under the send lock; a notice reads it without. The lock of the line is acquired first.
struct SendCredit: ~Copyable, Sendable {
    /// How many messages were sent since the connection has its number.
    private let sent = Atomic<UInt64>(0)
    /// What the port sees of it, and grants; set with the number of the connection, if there is memory for it.
    private let account = ReplaceableReference<SentAccount>()
    /// The token under which the last message asked; zero when it asked for nothing.
    private let lastToken = Atomic<UInt64>(0)
    /// The last token under which an answer came.
    private let answeredToken = Atomic<UInt64>(0)
    /// The number under which the port knows the connection; zero before it was sent.
    private let ownKey = Atomic<UInt64>(0)
    /// Whether the next message needs no grant: it is the first, or the port could not be asked.
    private let isExcused = Atomic<Bool>(true)
    /// Whether the port cannot be asked: the room is the connection's.
    private let isUnlimited: Atomic<Bool>

    /// Whether the port has moved to another process, which does not know the number.
    private let mustRename = Atomic<Bool>(false)

    /// Whether the port had no room when it was last asked.
    private let isQueueFull = Atomic<Bool>(false)

    /// Until when the port is not asked again, in nanoseconds: it did not answer, because its process is stopped, or only
    /// its busy threads may answer.
    private let unaskableUntil = Atomic<Int64>(0)

    /// Held by the sender that lacks a grant and asks for one; the others wait behind it, in their order.
    let line = SendLock()

    init(isUnlimited: Bool) { self.isUnlimited = Atomic(isUnlimited) }

    /// Whether a message may be sent now.
    var mayBegin: Bool {
        let sent = sent.load(ordering: .relaxed)
        if account.withObject({ sent < $0.granted }) == true { return true }
        return isExcused.load(ordering: .relaxed) || hasBeenAnswered || isUnlimited.load(ordering: .relaxed)
    }

    /// Whether the last message was a request, and was answered: it has left the queue, and those before it.
    private var hasBeenAnswered: Bool {
        let token = lastToken.load(ordering: .relaxed)
        return token != 0 && answeredToken.load(ordering: .acquiring) == token
    }

    /// A message was sent, or its first piece.
    func didBegin(asking token: UInt64) {
        let count = sent.load(ordering: .relaxed) &+ 1
        sent.store(count, ordering: .relaxed)
        account.withObject { $0.sent.store(count) }
        lastToken.store(token, ordering: .relaxed)
        if isExcused.load(ordering: .relaxed) { isExcused.store(false, ordering: .relaxed) }
    }

    /// The message that asked under the token was answered.
    func wasAnswered(_ token: UInt64) {
        if answeredToken.load(ordering: .relaxed) < token { answeredToken.store(token, ordering: .releasing) }
    }

    /// The number under which the port knows the connection; nil before it was sent.
    var key: UInt64? {
        let key = ownKey.load(ordering: .relaxed)
        return key == 0 || mustRename.load(ordering: .relaxed) ? nil : key
    }

    /// The port has moved to another process: what was granted before may still be sent, and then the connection gets
    /// another number. May be called by any thread.
    func portDidMove() {
        if ownKey.load(ordering: .relaxed) != 0 { mustRename.store(true, ordering: .relaxed) }
        unaskableUntil.store(0, ordering: .relaxed)
    }

    /// The packet that gives the connection a number, which no other process can guess.
    static func naming() -> OutgoingPacket {
        OutgoingPacket(header: PacketHeader(kind: .credit, asks: UInt64.random(in: 1 ... .max)))
    }

    /// Called before a number is sent: the port may move again from now on.
    ///
    /// - Returns: whether the connection had another one before.
    func willName() -> Bool { mustRename.exchange(false, ordering: .relaxed) }

    /// It was not sent.
    func didNotName(isOther: Bool) { if isOther { mustRename.store(true, ordering: .relaxed) } }

    /// The packet was sent: messages are counted from now on.
    func didName(_ packet: OutgoingPacket, isOther: Bool) {
        if isOther { _ = account.remove() }
        sent.store(0, ordering: .relaxed)
        if let (word, file) = try? SentCount.make() { account.set(SentAccount(packet.header.asks, word, file)) }
        ownKey.store(packet.header.asks, ordering: .relaxed)
    }

    /// A question for the port; nil when there is no memory for what it needs.
    func question(_ purpose: CreditQuestion.Purpose) -> CreditQuestion? {
        guard let key, let account = account.object else { return nil }
        return CreditQuestion(key: key, purpose: purpose, sentCount: account.sentFile)
    }

    /// What the port answered to a question for the connection's number: it may have another one since.
    func accept(_ grant: CreditQuery.Grant, for key: UInt64) {
        guard let account = account.object, account.key == key, !account.isOpen else { return }
        guard let page = grant.page, let word = (try? GrantPage.map(page, at: grant.index)) ?? nil else {
            return excuse()
        }
        account.open(word)
    }

    /// Whether the port may be asked now.
    var isAskable: Bool {
        if isUnlimited.load(ordering: .relaxed) { return false }
        let until = unaskableUntil.load(ordering: .relaxed)
        return until == 0 || MonotonicInstant.now.nanoseconds >= until
    }

    /// Whether the port had no room when it was last asked: its thread is about to make some.
    var wasQueueFull: Bool { isQueueFull.load(ordering: .relaxed) }

    func didAsk(wasQueueFull: Bool) { isQueueFull.store(wasQueueFull, ordering: .relaxed) }

    /// No answer came: for some time the limit is the connection's.
    func noteUnanswered() {
        let until = MonotonicInstant.after(Tuning.timeUntilNextQuestion)
        unaskableUntil.store(until.nanoseconds, ordering: .relaxed)
        excuse()
    }

    func setUnlimited() { isUnlimited.store(true, ordering: .relaxed) }

    /// The port cannot be asked now: the next message is sent if there is room in the connection.
    func excuse() { isExcused.store(true, ordering: .relaxed) }
}

/// The two numbers that an end and its port share, as this end has them.
final class SentAccount: Sendable {
    /// The number of the connection then.
    let key: UInt64
    /// How many messages were sent since the connection has its number.
    let sent: SharedWord
    /// The file of that, until the port has it.
    private let file: Mutex<SharedDescriptor?>
    /// What the port has granted; set when it first grants something.
    private let grant = SetOnceReference<GrantWord>()

    init(_ key: UInt64, _ sent: SharedWord, _ file: SharedDescriptor) {
        (self.key, self.sent) = (key, sent)
        self.file = Mutex(file)
    }

    /// The file of what was sent; nil once the port has it.
    var sentFile: SharedDescriptor? { file.withLock { $0 } }

    /// How many messages the port has granted.
    var granted: UInt64 { grant.withObject { $0.word.load() } ?? 0 }

    /// Whether it has granted any.
    var isOpen: Bool { grant.object != nil }

    /// The port has granted something, and has the file.
    func open(_ granted: SharedWord) {
        grant.set(GrantWord(granted))
        _ = file.withLock { $0.take() }  // released without the lock
    }
}

/// What a port has granted, at its client.
private final class GrantWord: Sendable {
    let word: SharedWord  // immutable

    init(_ word: SharedWord) { self.word = word }
}

/// A connection to a port over which a sender asks for room, and waits for it.
final class CreditQuery: Sendable {
    /// Where the port publishes what it lets the connection send.
    struct Grant: Sendable {
        /// Nil where it has been sent before.
        var page: SharedDescriptor?
        var index: Int
    }

    enum Answer: Sendable {
        case granted(Grant)
        case full
        /// Another answer comes when there is room.
        case waiting
        /// What was sent has been received, as far as the queue has room.
        case received
        /// The port has ended, or its process.
        case ended
        /// The port cannot answer now.
        case unavailable
    }

    /// The number of the connection about which it asks.
    let key: UInt64  // immutable
    private let socket: SharedDescriptor  // immutable
    /// Whether another thread has ended the wait.
    private let wasGivenUp = Atomic<Bool>(false)
    /// How many answers have come: at most one that the sender waits in line, and one that ends the wait.
    private let answerCount = Atomic<Int>(0)

    /// Whether the port has answered.
    var isAnswered: Bool { answerCount.load(ordering: .relaxed) > 0 }

    /// Whether another thread has ended the wait: what comes is no answer.
    var isGivenUp: Bool { wasGivenUp.load(ordering: .acquiring) }

    /// Ends the wait from another thread. The sender leaves the port's line.
    func giveUp() {
        wasGivenUp.store(true, ordering: .releasing)
        sysShutDown(rawValue)
    }

    /// Readable when an answer has come.
    var rawValue: CInt { socket.rawValue }

    /// Asks; nil when the other side is gone.
    ///
    /// - Throws: `descriptorLimit`, `systemCallFailed`.
    init?(_ question: CreditQuestion, over socket: SharedDescriptor) throws(PortError) {
        let header = PacketHeader(
            kind: .credit, descriptorCount: question.sentCount == nil ? 0 : 1,
            componentCount: question.purpose.rawValue, asks: question.key)
        let result = try PortError.converting(
            sysSendPacket(socket.rawValue, head: header.words, descriptors: question.sentCount.map { [$0] } ?? []))
        (self.socket, key) = (socket, question.key)
        guard result == .sent else { return nil }
    }

    /// Reads an answer that has come; nil when there is none.
    func receive() -> Answer? {
        let received = try? sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.packetLimit)
        guard let (outcome, head, _) = received else { return .unavailable }
        var descriptors: [SharedDescriptor] = []
        switch outcome {
        case .wouldBlock: return nil
        case .packet(_, let received): descriptors = received
        case .descriptorsLost: return .unavailable
        default: return .ended
        }
        guard let header = head.flatMap({ PacketHeader($0) }) else { return .ended }
        let count = answerCount.add(1, ordering: .relaxed).newValue
        if count > 2 || count == 2 && header.componentCount == 2 { return .unavailable }
        switch header.kind {
        case .credit: return Self.answer(header, descriptors)
        case .refused: return .unavailable
        default: return .ended
        }
    }

    private static func answer(_ header: PacketHeader, _ descriptors: [SharedDescriptor]) -> Answer {
        switch header.componentCount {
        case 1: .full
        case 2: .waiting
        case 3: .received
        case 4: .granted(Grant(page: descriptors.first, index: Int(header.messageID)))
        default: .unavailable
        }
    }
}
