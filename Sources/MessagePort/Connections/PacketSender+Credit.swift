// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a sender gets what it lacks: its turn, a grant of the port (`SendCredit`), or room in the connection, which the
// port's process makes by receiving what fills it, also while the owner is busy.

import PortSystem
import RunLoopCore
import Synchronization

// MARK: - Turns

extension PacketSender {
    func waitForRoom(for message: borrowing Transmission, until deadline: MonotonicInstant) throws(PortError) {
        holderWillBlock(for: message)
        defer { holderDidContinue(for: message) }
        try PortError.converting(channel.waitForRoom(until: deadline))
    }

    /// Locks for a sender that may wait until a moment, or does not wait.
    func acquire(_ lock: borrowing SendLock, until instant: MonotonicInstant) throws(PortError) {
        let isLocked = instant <= .now ? lock.lockUnlessHolderBlocks() : lock.lock(until: instant)
        if !isLocked { throw PortError(.sendTimedOut) }
    }

    /// Before a wait: others send meanwhile, unless the message has to be sent without interruption.
    ///
    /// - Returns: whether the lock is still held.
    func release(
        _ message: borrowing Transmission, because reason: WaitReason, over connection: SocketConnection
    ) -> Bool {
        if reason == .lacksRoom, !message.mayBeDivided { return true }
        unlock(over: connection)
        return false
    }

    /// A message was sent, or is given up.
    func end(
        _ message: borrowing Transmission, isLocked: Bool, _ query: CreditQuery?, over connection: SocketConnection
    ) {
        if isLocked { unlock(over: connection) } else { connection.flush() }
        if message.isFirstInLine { credit.line.unlock() }
        if message.isInTurn { largeLine.unlock() }
        withExtendedLifetime(query) {}
    }

    /// The sender of a message leaves the line for a grant: that of large messages is acquired first.
    func leaveLine(_ message: inout Transmission) {
        if message.isFirstInLine { credit.line.unlock() }
        message.isFirstInLine = false
    }

    /// The sender of a message waits for room. What it holds of the line for a grant it gives up when the message is
    /// sent.
    func holderWillBlock(for message: borrowing Transmission) {
        holderOfLinesWillBlock(message)
        if !message.mayBeDivided { lock.holderWillBlock() }
    }

    func holderOfLinesWillBlock(_ message: borrowing Transmission) {
        if message.isFirstInLine { credit.line.holderWillBlock() }
        if message.isInTurn { largeLine.holderWillBlock() }
    }

    func holderDidContinue(for message: borrowing Transmission) {
        if message.isInTurn { largeLine.holderDidContinue() }
        if !message.mayBeDivided { lock.holderDidContinue() }
    }

    /// Why a message cannot be begun.
    func reasonToWait(
        before message: borrowing Transmission, over connection: SocketConnection
    ) throws(PortError) -> WaitReason? {
        let allowance = betweenPieces.load(ordering: .acquiring)
        let isLarge = !isPortsEnd && message.isLarge(pieceLimit(for: message))
        if allowance >= 0 {
            // What is sent first cannot be sent now: the backlog, and the number of the connection.
            let isFree = backlog.isIdle && !isLarge && message.fits(PieceAllowance(bytes: allowance))
            if isFree, !mustAwaitCredit(message) { return nil }
            return isFree && credit.key != nil ? .lacksGrant : .lacksTurn
        }
        if try !sendBacklog(over: connection) { return .lacksRoom }
        if isLarge, message.isForPort, !message.isInTurn { return .lacksTurn }
        if mustAwaitCredit(message) { return try openAccount(over: connection) ? .lacksGrant : .lacksRoom }
        connection.offerRingsIfDue()
        return nil
    }

    /// A message for the port was sent, or its first piece.
    func didBegin(_ message: inout Transmission) {
        // An answer to one between the pieces of another does not say that that has left the queue, nor does one that
        // says that the message is there.
        let staysQueued = isWithinLargeMessage || message.confirmation == .queued
        credit.didBegin(asking: staysQueued ? 0 : message.asks)
        // Others may send between the pieces.
        if message.mayBeDivided { leaveLine(&message) }
    }

    /// Becomes the first that asks for a grant.
    func enterLine(
        _ message: inout Transmission, until instant: MonotonicInstant, over connection: SocketConnection
    ) throws(PortError) {
        if message.isFirstInLine || credit.line.tryLock() {
            message.isFirstInLine = true
            return
        }
        if instant <= .now {
            try acquire(credit.line, until: instant)
        } else {
            if message.isInTurn { largeLine.holderWillBlock() }
            let token = message.asks
            let isLocked = credit.line.lock { event in
                // Waiting for the event throws nothing.
                try? connection.waitForRoom(until: instant, toAsk: token, waking: { event.set() }) {
                    event.wait(until: $0)
                }
            }
            if !isLocked { throw PortError(.sendTimedOut) }
        }
        message.isFirstInLine = true
    }

    /// Counts what may be sent between the pieces of a message: a piece of it was sent, or another message.
    func countBetweenPieces(_ message: borrowing Transmission, _ size: Int) {
        if !message.mayBeDivided {
            // Not stored: the other may be given up at this moment.
            betweenPieces.subtract(message.costBetweenPieces, ordering: .relaxed)
        } else if message.isDone {
            betweenPieces.store(-1, ordering: .sequentiallyConsistent)
        } else {
            var allowance = PieceAllowance(bytes: max(0, betweenPieces.load(ordering: .relaxed)))
            allowance.didPass(size, missing: message.restSize)
            betweenPieces.store(allowance.bytes, ordering: .relaxed)
        }
    }
}

// MARK: - Grants and room

extension PacketSender {
    func mustAwaitCredit(_ message: borrowing Transmission) -> Bool {
        if !message.isForPort || message.isBegun { return false }
        return message.isFirstInLine ? !credit.mayBegin : mustAwaitCredit
    }

    /// Waits until the port lets this end send another message. The caller is the first in line. The send lock is not held:
    /// replies and notices are sent meanwhile.
    ///
    /// - Returns: the connection over which the port has granted a slot, to be closed when that is used.
    /// - Throws: `sendTimedOut` when the port has no room until the deadline, or now if the caller may not wait.
    func awaitCredit(
        for message: borrowing Transmission, until deadline: MonotonicInstant, mayWait: Bool,
        over connection: SocketConnection
    ) throws(PortError) -> CreditQuery? {
        if credit.mayBegin || mayWait && spinForCredit(until: deadline) { return nil }
        guard let query = try openQuery(for: message, until: deadline, mayWait: mayWait, over: connection) else {
            return nil
        }
        var (limit, isInLine) = (MonotonicInstant.after(Tuning.creditAnswerTime), false)
        if mayWait { limit = min(limit, deadline) }
        while let answer = try answer(to: query, toAsk: mayWait ? message.asks : 0, until: limit, over: connection) {
            switch answer {
            case .full: throw PortError(.sendTimedOut)
            case .waiting where mayWait && !isInLine:
                holderOfLinesWillBlock(message)
                (limit, isInLine) = (deadline, true)
            default:
                guard try accept(answer, to: query, over: connection) else { return nil }
                credit.line.holderDidContinue()
                credit.didAsk(wasQueueFull: isInLine)
                if credit.mayBegin { return query }
                // It was taken back since, or the port says what is not so.
                if !mayWait { throw PortError(.sendTimedOut) }
                let pause = min(deadline, .after(Tuning.timeUntilRetry))
                _ = try PortError.converting(sysPoll(connection.descriptor.rawValue, .peerClosed, until: pause))
                return nil
            }
        }
        if isInLine || query.isGivenUp || mayWait && .now >= deadline { throw PortError(.sendTimedOut) }
        credit.noteUnanswered()
        // The port may have moved, which a program that only sends has not read yet.
        connection.receiveUnlessReceiving()
        return nil
    }

    /// Waits for the port's answer to a question for a message that will ask under the token.
    private func answer(
        to query: CreditQuery, toAsk token: UInt64, until deadline: MonotonicInstant, over connection: SocketConnection
    ) throws(PortError) -> CreditQuery.Answer? {
        var found: CreditQuery.Answer?
        try connection.waitForRoom(until: deadline, toAsk: token, waking: { query.giveUp() }) {
            (instant) throws(PortError) in
            found = try answer(to: query, until: instant, over: connection)
            return found != nil
        }
        return query.isGivenUp ? nil : found
    }

    private func openQuery(
        for message: borrowing Transmission, until deadline: MonotonicInstant, mayWait: Bool,
        over connection: SocketConnection
    ) throws(PortError) -> CreditQuery? {
        do throws(PortError) {
            return try openQuery(credit.question(mayWait ? .wait : .room), over: connection)
        } catch {
            guard error.code == .sendTimedOut, mayWait else { throw error }
        }
        // Very many clients wait to be accepted.
        holderOfLinesWillBlock(message)
        return try openQuery(credit.question(.wait), until: deadline, over: connection)
    }

    /// As above, in a task.
    nonisolated(nonsending) func awaitCredit(
        for message: borrowing Transmission, waiting wait: TaskWaiter, over connection: SocketConnection
    ) async throws(PortError) -> CreditQuery? {
        if credit.mayBegin { return nil }
        if !wait.mayWait { return try awaitCredit(for: message, until: .distantPast, mayWait: false, over: connection) }
        holderOfLinesWillBlock(message)
        let query: CreditQuery?
        do throws(PortError) {
            query = try openQuery(credit.question(.wait), over: connection)
        } catch {
            guard error.code == .sendTimedOut else { throw error }
            try await connection.pause(wait)
            return nil
        }
        guard let query else { return nil }
        if try await !connection.waitForCredit(query, wait) {
            credit.noteUnanswered()
            connection.receiveUnlessReceiving()
        } else if !credit.mayBegin {
            try await connection.pause(wait)
            return nil
        }
        return query
    }

    /// Does what an answer amounts to that ends a wait.
    ///
    /// - Returns: whether it is a grant.
    /// - Throws: when the port has ended.
    func accept(
        _ answer: CreditQuery.Answer, to query: CreditQuery, over connection: SocketConnection
    ) throws(PortError) -> Bool {
        if case .ended = answer, connection.isFoundDead() { throw connection.peerDidClose() }
        // The port has moved since, and the connection has another number: its sender asks again.
        if credit.key != query.key { return false }
        switch answer {
        case .granted(let grant):
            credit.accept(grant, for: query.key)
            return true
        case .unavailable: connection.receiveUnlessReceiving()  // the port may have moved
        case .full, .waiting, .received, .ended: break
        }
        credit.excuse()
        return false
    }

    /// Makes room in a full connection, or waits for some. The caller holds the lock, unless others may send between
    /// the message's pieces.
    func makeRoom(
        for message: borrowing Transmission, until deadline: MonotonicInstant, mayWait: Bool,
        over connection: SocketConnection
    ) throws(PortError) {
        // A receiver that runs reads soon.
        if mayWait { try waitForRoom(for: message, until: min(deadline, .after(Tuning.timeBeforeKnock))) }
        if channel.isWritable || mayWait && deadline <= .now { return }
        holderWillBlock(for: message)
        defer { holderDidContinue(for: message) }
        // The answer says that what was sent was received, as far as the queue has room.
        guard let query = try openKnock(over: connection) else { return }
        let limit = MonotonicInstant.after(Tuning.creditAnswerTime)
        let answer = try answer(
            to: query, orRoom: true, until: mayWait ? min(deadline, limit) : limit, over: connection)
        if answer == nil, .now >= limit { credit.noteUnanswered() }
    }

    /// Has a thread of the port's process receive what was sent, if one accepts clients while the owner is busy. Does not
    /// wait for the answer.
    func knock(_ purpose: CreditQuestion.Purpose = .reading, over connection: SocketConnection) {
        guard !isPortsEnd, credit.isAskable, let address = connection.portAddress,
            case .connected(let socket, _)? = try? ProcessEndpoints.connect(toPath: address.path, until: .distantPast)
        else { return }
        _ = try? CreditQuery(CreditQuestion(key: credit.key ?? 1, purpose: purpose), over: socket)
    }

    /// Has a thread of the port's process receive what was sent.
    ///
    /// - Returns: the connection over which the answer comes; nil when the port cannot be asked.
    func openKnock(over connection: SocketConnection) throws(PortError) -> CreditQuery? {
        if isPortsEnd || !credit.isAskable { return nil }
        do throws(PortError) {
            return try openQuery(CreditQuestion(key: credit.key ?? 1, purpose: .reading), over: connection)
        } catch {
            if error.code == .sendTimedOut { return nil }  // too many ask: they are read all the same
            throw error
        }
    }

    /// Asks for room for a notice. The lock need not be held.
    ///
    /// - Returns: nil when there is some, or the port cannot be asked.
    func askForNotice(over connection: SocketConnection) throws(PortError) -> CreditQuery? {
        if !mustAwaitCredit { return nil }
        if credit.key == nil {
            guard lock.tryLock() else { return nil }
            defer { unlock(over: connection) }
            guard !isWithinLargeMessage, try sendBacklog(over: connection), try openAccount(over: connection) else {
                return nil
            }
        }
        return try openQuery(credit.question(.wait), over: connection)
    }

    /// Waits for the port's answer; nil when none comes in time, or the connection has room and that is enough.
    ///
    /// - Throws: when the connection for which it asks has ended.
    private func answer(
        to query: CreditQuery, orRoom: Bool = false, until deadline: MonotonicInstant, over connection: SocketConnection
    ) throws(PortError) -> CreditQuery.Answer? {
        let events: EpollEvents = orRoom ? [.peerClosed, .writable] : .peerClosed
        while true {
            if let answer = query.receive() { return answer }
            if .now >= deadline { return nil }
            let seen = try PortError.converting(
                sysPoll(query.rawValue, .readable, connection.descriptor.rawValue, events, until: deadline))
            if !seen.isDisjoint(with: [.peerClosed, .hangUp, .error]), connection.isFoundDead() {
                throw connection.peerDidClose()
            }
            if seen.contains(.writable) { return nil }
        }
    }

    /// Spins as at a full ring, if the queue was full; what was taken back for others comes by a question alone.
    private func spinForCredit(until deadline: MonotonicInstant) -> Bool {
        if !credit.wasQueueFull { return false }
        ProcessorAllowance.shared.spin(
            until: min(deadline, .after(Tuning.senderTimeout)), pauses: Tuning.pausesBetweenChecks, yields: true
        ) { credit.mayBegin }
        return credit.mayBegin
    }

    /// Sends the port the number of the connection, unless that was done. The caller holds the lock.
    ///
    /// - Returns: false when there is no room for that.
    func openAccount(over connection: SocketConnection) throws(PortError) -> Bool {
        if credit.key != nil { return true }
        let (packet, isOther) = (SendCredit.naming(), credit.willName())
        guard try offer(packet, over: connection) else {
            credit.didNotName(isOther: isOther)
            return false
        }
        credit.didName(packet, isOther: isOther)
        return true
    }

    /// Asks the port.
    ///
    /// - Returns: nil when it cannot be asked: then the next message needs no grant.
    /// - Throws: `sendTimedOut` when too many clients wait to be accepted.
    private func openQuery(
        _ question: CreditQuestion?, until deadline: MonotonicInstant = .distantPast, over connection: SocketConnection
    ) throws(PortError) -> CreditQuery? {
        guard credit.isAskable, let address = connection.portAddress, let question else {
            credit.excuse()
            return nil
        }
        do throws(PortError) {
            switch try ProcessEndpoints.connect(toPath: address.path, until: deadline) {
            case .connected(let socket, _):
                if let query = try CreditQuery(question, over: socket) { return query }
                // It was refused at once.
                credit.excuse()
                return nil
            case .busy: throw PortError(.sendTimedOut)
            case .dead: break
            }
        } catch {
            if error.code == .sendTimedOut { throw error }
            credit.excuse()
            return nil
        }
        // A port that ends ends its connections first: this one has lost its address.
        if connection.isFoundDead() { throw connection.peerDidClose() }
        credit.setUnlimited()
        return nil
    }
}
