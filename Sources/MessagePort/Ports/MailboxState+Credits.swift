// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A question for a connection whose number has not come yet.
struct EarlyQuestion: Sendable {
    /// Without its file, which is mapped.
    var question: CreditQuestion
    let sentCount: SharedWord?
    let connection: SocketConnection
    /// Whether its sender was answered that it waits.
    let isWaiting: Bool
}

// What other processes may send: `CreditTable` has the counts.
extension MailboxState {
    var hasGrantPage: Bool { !coldContention.isBlank && contention.credits.page != nil }

    var hasEarlyQuestions: Bool { !coldContention.isBlank && !contention.earlyQuestions.isEmpty }

    mutating func useGrantPage(_ page: GrantPage) { if !hasGrantPage { contention.credits.page = page } }

    /// Begins to count what may be sent over a connection.
    ///
    /// - Returns: the index of its account, and the questions that came before.
    mutating func openCredit(_ key: UInt64, of owner: PeerID) -> (index: Int?, early: [EarlyQuestion]) {
        guard !isDead, let index = contention.credits.open(key, of: owner) else { return (nil, []) }
        let early = contention.earlyQuestions.filter { $0.question.key == key }
        if !early.isEmpty { contention.earlyQuestions.removeAll { $0.question.key == key } }
        return (index, early)
    }

    /// Ends the account of a connection, and the questions for it.
    ///
    /// - Returns: the connections over which they came, to be closed, and what is to be released without the lock.
    mutating func closeCredit(_ key: UInt64) -> (waiting: [SocketConnection], sent: SharedWord?) {
        let (sent, isClosed) = contention.credits.close(key)
        if !isClosed { return ([], nil) }
        let waiting = contention.senders.compactMap { $0.request?.key == key ? $0.request?.connection : nil }
        contention.senders.removeAll { $0.request?.key == key }
        return (waiting, sent)
    }

    /// Ends a question, whose connection is closed: its sender has used its slot, or has given up.
    ///
    /// - Returns: what is to be released without the lock.
    mutating func endQuestion(for key: UInt64, over connection: SocketConnection) -> [EarlyQuestion] {
        if isDead { return [] }
        let early = contention.earlyQuestions.filter { $0.connection === connection }
        if !early.isEmpty { contention.earlyQuestions.removeAll { $0.connection === connection } }
        let isInLine = contention.senders.contains { $0.request?.connection === connection }
        if isInLine { contention.senders.removeAll { $0.request?.connection === connection } }
        if contention.grantedQuestions.remove(ObjectIdentifier(connection)) != nil,
            let index = contention.credits.index(of: key)
        {
            contention.credits.endAwaited(index)
            if !contention.isQuiet { _ = contention.credits.takeBack() }
        }
        return early
    }

    func creditOwner(for key: UInt64) -> PeerID? { coldContention.isBlank ? nil : contention.credits.owner(of: key) }

    /// A message has come over a connection.
    ///
    /// - Returns: whether the connection can send only few more.
    mutating func didReceive(_ credit: ReceivedCredit) -> Bool {
        isLow(contention.credits.didReceive(1, over: credit))
    }

    /// Whether a connection can send only few more messages.
    @inline(__always)
    func isLow(_ unused: Int) -> Bool { unused <= batch / 2 }

    /// How many slots each of the connections may have unused while others need some.
    private var portion: Int { contention.credits.portion(of: limit) }
    private var batch: Int { contention.credits.batch(of: limit) }

    /// Whether a part of a batch is free. Where clients are many, their portions are smaller, and half of one is enough.
    private func hasFree(batchDividedBy divisor: Int) -> Bool {
        freeSlots > min(batch / divisor, portion / 2)
    }

    /// The owner of a connection that can send only few more messages, when nobody waits and there is room for a number of
    /// them: it is granted more at once, before its sender has to ask, and not one after the other.
    func ownerToGrant(_ credit: ReceivedCredit) -> PeerID? {
        guard contention.isQuiet, hasFree(batchDividedBy: 4) || contention.credits.mayExceedPortions(of: limit) else {
            return nil
        }
        return contention.credits.owner(of: credit)
    }

    /// Whether a connection has used up what it was granted.
    var hasExhausted: Bool {
        @inline(__always) get { !coldContention.isBlank && contention.credits.hasExhausted }
    }

    /// The same for the connection that has used up what it was granted, when half of a batch is free.
    mutating func removeExhausted() -> (index: Int, owner: PeerID)? {
        contention.isQuiet && hasFree(batchDividedBy: 2) ? contention.credits.removeExhausted() : nil
    }

    /// Grants a connection more, up to the share of its process.
    mutating func grantMore(_ index: Int, share: Int) {
        // The client writes what it has sent with each message: it is read here only.
        noteHighWater(onTheirWay: contention.credits.onTheirWay(index))
        if !hasFree(batchDividedBy: 4) { _ = contention.credits.takeBack(besides: index, leaving: portion) }
        raise(index, share: share)
    }

    /// Grants a connection what is free.
    private mutating func raise(_ index: Int, share: Int) {
        contention.credits.raise(index, by: freeSlots, atMost: min(share, limit), portion: portion)
    }

    private var freeSlots: Int { policy == .refuse ? openLimit - queue.count - grantedSlots : limit }

    /// Answers a sender of a connection: grants what is free, or was granted to others that do not use it.
    mutating func ask(
        _ question: CreditQuestion, _ sent: SharedWord?, share: Int, over connection: SocketConnection, isLast: Bool
    ) -> CreditAnswer {
        if isDead { return .unknown }  // its connection is being closed
        guard let index = contention.credits.index(of: question.key) else {
            // Its number has been sent before: it comes as soon as there is room for what was sent before that.
            if !isLast { return .unknown }
            if room == 0, question.purpose == .room { return .full }
            let isWaiting = room == 0 && question.purpose == .wait
            var early = EarlyQuestion(
                question: question, sentCount: sent, connection: connection, isWaiting: isWaiting)
            early.question.sentCount = nil
            contention.earlyQuestions.append(early)
            return isWaiting ? .waiting : .unknown
        }
        guard contention.credits.share(index, sent), let page = contention.credits.page else { return .refused }
        // A client that has asked with its memory does not have the page yet.
        let grant = CreditGrant(page: sent == nil ? nil : page, index: index)
        if findCredit(index, share: share) { return .granted(grant) }
        guard question.purpose == .wait else { return .full }
        revokeLease()
        if findCredit(index, share: share) { return .granted(grant) }
        if contention.senders.isEmpty, freeSlots > 0 {
            // One is granted although its process has its share: it waits in the connection then.
            contention.credits.grantAwaited(index)
            contention.grantedQuestions.insert(ObjectIdentifier(connection))
            return .granted(grant)
        }
        contention.senders.append(BlockedSender(CreditRequest(question.key, grant, share: share, over: connection)))
        return .waiting
    }

    /// Whether the connection may send a message, now that what is free was granted.
    private mutating func findCredit(_ index: Int, share: Int) -> Bool {
        if contention.credits.maySend(index) { return true }
        if !contention.senders.isEmpty { return false }
        if freeSlots < portion { _ = contention.credits.takeBack(besides: index, leaving: portion) }
        raise(index, share: share)
        if !contention.credits.maySend(index), contention.credits.takeBack(besides: index) {
            raise(index, share: share)
        }
        return contention.credits.maySend(index)
    }

    /// Whether a new sender of this process finds room in slots that other processes were granted and do not use.
    mutating func findGrantedRoom() -> Bool {
        if isFrozen || coldContention.isBlank || !contention.senders.isEmpty { return false }
        for rest in [portion / 2, 0] where contention.credits.takeBack(leaving: rest) {
            if hasRoom { return true }
        }
        return false
    }

    /// Grants a slot to a connection that has waited for it.
    ///
    /// - Returns: false when it has ended.
    mutating func grantAwaited(to request: CreditRequest) -> Bool {
        guard let index = contention.credits.index(of: request.key) else { return false }
        contention.credits.grantAwaited(index)
        contention.grantedQuestions.insert(ObjectIdentifier(request.connection))
        if contention.senders.isEmpty { raise(index, share: request.share) }
        return true
    }

    /// Whether the first sender in line, of another process, waits until half of the queue is free, or for a moment: it
    /// would be woken, and ask again, for each slot.
    mutating func postponesGrant() -> Bool {
        if limit < Tuning.leastLimitOfGrantedBatches || freeSlots > limit / 2 || contention.grantTiming == .isDue {
            return false
        }
        if contention.grantTiming == .none { contention.grantTiming = .mustBegin }
        return true
    }

    /// Whether a timer must begin, after which what is free is granted.
    mutating func beginGrantTiming() -> Bool {
        guard !coldContention.isBlank, contention.grantTiming == .mustBegin else { return false }
        contention.grantTiming = .runs
        return true
    }

    /// Grants what is free to those that wait.
    ///
    /// - Returns: the senders whose wait is over, and whether the queue was empty before.
    mutating func endGrantTiming() -> (senders: [BlockedSender], wasEmpty: Bool) {
        contention.grantTiming = .isDue
        defer { contention.grantTiming = .none }
        return admitSenders()
    }

    /// Whether a client has a slot that it does not use, or will get one.
    private var mayLackGrantedRoom: Bool {
        contention.credits.outstanding > 0 || contention.senders.contains { $0.request != nil }
    }

    /// A sender finds no room.
    ///
    /// - Returns: whether that is because of what was granted, and nothing checks yet whether it is used: the caller does.
    mutating func beginCreditCheck() -> Bool {
        if isDead || coldContention.isBlank || !mayLackGrantedRoom { return false }
        contention.hasRefusedSender = true
        if contention.isCheckingCredits { return false }
        contention.isCheckingCredits = true
        return true
    }

    /// Takes back what is not used, for those that wait, or were refused since the last check.
    ///
    /// - Returns: whether to check again.
    mutating func checkCredits() -> Bool {
        let isNeeded = contention.hasRefusedSender || !contention.isQuiet
        contention.hasRefusedSender = false
        if isNeeded { contention.credits.takeBackStalled() }
        contention.isCheckingCredits = isNeeded && !isDead && mayLackGrantedRoom
        return contention.isCheckingCredits
    }
}
