// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// Requests and replies: which message asks for which reply, and what is notified of it, or of the port's end.
extension SocketConnection: ReplyConnection {
    /// Whether this end has asked for a reply under the token.
    func hasAsked(under token: UInt64) -> Bool { token <= state.withLock { $0.requests.lastToken } }

    /// A message from the peer begins.
    ///
    /// - Returns: whether a request awaits it; whether it asks under the token of another request, which cannot stand
    ///   for two; and whether the peer only observed before: the port has one sender more.
    func messageDidBegin(_ header: PacketHeader) -> (isAwaited: Bool, isTokenTaken: Bool, hasOnlyObserved: Bool) {
        state.withLock { state in
            (
                header.answers != 0 && state.requests.isAwaited(header.answers),
                header.asks != 0 && state.requests.isUnanswered(header.asks),
                state.noteMessages()
            )
        }
    }

    /// Notes that the peer sends messages.
    ///
    /// - Returns: whether it only observed before.
    func noteMessages() -> Bool { state.withLock { $0.noteMessages() } }

    /// A request came that asks for a reply.
    func willReply(to token: UInt64) { state.withLock { $0.requests.addUnanswered(token) } }

    /// The reply right left the message of the peer's request.
    func noteRightRemoved(_ token: UInt64) {
        if !isInherited { state.withLock { $0.requests.noteRightRemoved(token) } }
    }

    /// A request was answered, or dropped, and the peer was notified.
    func didSettleReply(to token: UInt64) {
        let handlers = settleReply(to: token)
        if !handlers.isEmpty { Callouts.drop(handlers) }
    }

    /// The same.
    ///
    /// - Returns: handlers of the program, which the caller releases without a lock.
    func settleReply(to token: UInt64) -> [@Sendable () -> Void] {
        let (isDone, handlers) = state.withLock { state in
            let handlers = state.requests.settle(token)
            return (isPortsEnd && state.life.hasLostOwnSide && !state.requests.hasUnanswered, handlers)
        }
        if isDone { close(PortError(.peerDied)) }
        return handlers
    }

    /// Drops a request that the port does not take.
    func bounce(_ token: UInt64, because reason: PortError.Code? = nil, delivery: PortError.Delivery = .unknown) {
        willReply(to: token)
        dropReply(to: token, because: reason, delivery: delivery)
    }

    /// Drops a message for whose descriptors this process has no descriptor left. It is incomplete without them:
    /// requests that await it, or its answer, fail.
    func loseMessage(asks: UInt64, answers: UInt64) {
        if asks != 0 { bounce(asks, because: .descriptorsLost, delivery: .unread) }
        if answers != 0 { failAwaited(answers, PortError(.descriptorsLost, delivery: .read)) }
    }

    /// The fast path: sends a message of bytes alone, which may ask for a reply, or of memory that is lent, if the send
    /// lock is free.
    ///
    /// - Returns: whether it was sent; if not, the message is unchanged.
    func sendPlain(_ message: inout MachMessage, answering token: UInt64, until deadline: SendDeadline)
        throws(PortError) -> Bool
    {
        guard message.envelope.mayBePlain else { return false }
        guard let bytes = message.parts.removeOnlyBytes() else {
            if message.envelope.hasReplyRight { return false }
            return try sendLoan(message, answering: token, until: deadline)
        }
        if !PacketSender.mayBePlain(bytes) {
            message.parts = MessageParts(.bytes(bytes))
            return false
        }
        let head = ComponentKind.bytes.head(bytes.count).littleEndian
        let asked = try expectReply(for: message.replyTarget)
        var isSent = false
        defer { if isSent { didSend(token: asked) } else { forget(token: asked) } }
        isSent = try sender.sendPlain(
            head, bytes, id: message.id, asks: asked, from: asked == 0 ? nil : message.replyTarget?.receiver,
            answers: token, until: deadline, over: self)
        if !isSent {
            message.parts = MessageParts(.bytes(bytes))
            return false
        }
        BufferPool.leave(consume bytes)
        return true
    }

    /// As `send`, in a task, which blocks no thread while it waits for the send lock and for room.
    nonisolated(nonsending) func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError) {
        try checkProcess()
        let moves = try await beginMoves(of: message, waiting: wait)
        let encoded = try await message.encoded(waiting: wait, moving: moves, lending: lender(for: message))
        var transmission = try begin(message, encoded, answering: 0)
        do throws(PortError) {
            try await sender.transmit(&transmission, waiting: wait, over: self)
            try await moves?.waitUntilTaken(waiting: wait, over: self)
        } catch {
            if moves?.end(because: error) != true {
                didNotSend(transmission)
                throw error
            }
        }
        didSend(transmission)
    }

    /// A message was sent, which may ask for a reply or a confirmation.
    func didSend(_ transmission: borrowing Transmission) {
        if !transmission.loans.isEmpty { sharedMemory.object?.lender.didSend(transmission.loans) }
        didSend(token: transmission.asks)
        if transmission.confirmation == .queued { knockUnlessAnswered(transmission.asks) }
    }

    /// A message was not sent, or not as a whole.
    func didNotSend(_ transmission: borrowing Transmission) {
        if !transmission.loans.isEmpty { sharedMemory.object?.lender.withdraw(transmission.loans) }
        forget(token: transmission.asks)
    }

    /// Where no confirmation comes soon, the owner is busy: then another thread of its process moves the message into the
    /// queue.
    private func knockUnlessAnswered(_ token: UInt64) {
        guard let loop = try? IOThread.loop() else { return }
        loop.add(
            RunLoopTimer(after: Tuning.timeBeforeKnock) { [weak self] _ in
                guard let self, state.withLock({ $0.requests.isAwaited(token) }) else { return }
                sender.knock(over: self)
            })
    }

    /// Notes what receives the reply to a message. The caller sends it, and then calls `didSend`, or `forget` when that
    /// failed.
    func begin(
        _ message: MachMessage, _ encoded: consuming OutgoingMessage, answering token: UInt64
    ) throws(PortError) -> Transmission {
        let target = message.replyTarget
        let asked: UInt64
        do throws(PortError) {
            asked = try expectReply(for: target)
        } catch {
            if !encoded.loans.isEmpty { sharedMemory.object?.lender.withdraw(encoded.loans) }
            throw error
        }
        return Transmission(encoded, asks: asked, answers: token, confirming: target?.confirmation)
    }

    /// Notifies the peer that the message that asked with `token` will not be answered, which settles it, and why: the
    /// reason is nil when its receiver released the reply right. Never waits.
    func dropReply(to token: UInt64, because reason: PortError.Code? = nil, delivery: PortError.Delivery = .unknown) {
        if isInherited { return }
        let code = Int32(reason?.rawValue ?? 0)
        let header = PacketHeader(
            kind: .replyDropped, messageID: code, componentCount: UInt32(delivery.rawValue), answers: token)
        enqueue(OutgoingPacket(header: header, settles: token))
    }

    /// Answers the message that asked with `token` with an error, which settles it. Never waits.
    func failReply(to token: UInt64, code: Int32, text: String) {
        let header = PacketHeader(kind: .replyFailed, messageID: code, answers: token)
        enqueue(OutgoingPacket(header: header, payload: Array(text.utf8)[...], settles: token))
    }

    /// Notifies the peer that the reply to the message that asked with `token` is no longer awaited. Never waits:
    /// without room in the connection the notice is sent before the next message.
    package func giveUp(token: UInt64) {
        guard !isInherited, endAwaited(token) != nil, !isClosed else { return }
        enqueue(OutgoingPacket(header: PacketHeader(kind: .abandoned, asks: token)))
    }

    /// Notifies the peer that the port at this end is gone, while it still owes replies. Never waits: without room in
    /// the connection the notice is sent before the next reply.
    func sendPortEnded() {
        if isInherited { return }
        enqueue(OutgoingPacket(header: PacketHeader(kind: .portEnded)))
    }

    /// Sends a reply as far as there is room, and the rest when there is. Never waits. The request is settled once the
    /// whole reply was sent.
    ///
    /// - Throws: ``PortError`` when it exceeds a limit, the kernel failed, or the peer will not read it. Then the
    ///   request is not settled.
    func reply(_ message: MachMessage, answering token: UInt64) throws(PortError) {
        if isClosed { throw PortError(.deadName) }
        if !message.envelope.hasReplyRight, let bytes = message.parts.onlyBytes,
            try sender.replyPlain(bytes, id: message.id, answers: token, over: self)
        {
            return didSettleReply(to: token)
        }
        let encoded: OutgoingMessage
        switch try message.encodedOrFull(lending: lender(for: message)) {
        case .success(let message): encoded = message
        case .failure(let full): return try reply(message, answering: token, after: full.connection)
        }
        var transmission = try begin(message, encoded, answering: token)
        do throws(PortError) {
            try sender.reply(&transmission, settling: token, over: self)
        } catch {
            didNotSend(transmission)
            throw error
        }
        // At the right's end it may be in the backlog, which waits between the pieces of a message.
        if isPortsEnd { didSend(transmission) } else { didSend(token: transmission.asks) }
    }

    /// Notes what receives the reply to the message that is about to be sent.
    ///
    /// - Returns: the token that asks for it; zero when no reply is wanted.
    func expectReply(for target: ReplyTarget?) throws(PortError) -> UInt64 {
        guard let target, target.mayAsk else { return 0 }
        target.willAsk()
        let token = state.withLock { state -> UInt64? in
            state.life.failure == nil ? state.requests.begin(target) : nil
        }
        guard let token else {
            target.didEndAsking()
            throw PortError(.deadName)
        }
        do throws(PortError) {
            try target.receiver.expectReply(over: self)
        } catch {
            forget(token: token)
            throw error
        }
        return token
    }

    /// The message that asks with the token was sent. When the connection has ended since, the request fails.
    func didSend(token: UInt64) {
        if token == 0 { return }
        let (target, failure) = state.withLock { state -> (ReplyTarget?, PortError?) in
            guard let target = state.requests.didSend(token) else { return (nil, nil) }
            guard let failure = state.life.failure else { return (target, nil) }
            return (state.requests.end(token), failure)
        }
        if let failure { return target?.failAsking(failure.delivered(.unknown)) ?? () }
        target?.receiver.passAbandonment(to: self, token: token)
    }

    var awaitsReply: Bool { state.withLock { $0.requests.awaitsReply } }

    /// The peer no longer awaits the reply to the request that asked with the token.
    func requesterGaveUp(_ token: UInt64) {
        let handlers = state.withLock { $0.requests.abandon(token) }
        for notify in handlers { notify() }
        Callouts.drop(handlers)
        if hasPendingReply(to: token) { dropPendingReply(to: token) }
    }

    /// Whether the request that asked with the token is abandoned, as far as this process knows.
    func isAbandoned(_ token: UInt64) -> Bool {
        let (isAbandoned, hasLostPort) = state.withLock { state in
            (state.life.failure != nil || state.requests.isAbandoned(token), isPortsEnd && state.life.hasLostOwnSide)
        }
        if isAbandoned || !hasLostPort { return isAbandoned }
        // Nothing can be received any more, not even the peer's end; the kernel knows of it.
        let events = try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)
        return !(events ?? []).isDisjoint(with: [.hangUp, .error])
    }

    /// Calls `notify`, once, when the request that asked with the token is abandoned.
    func awaitAbandonment(of token: UInt64, _ notify: @escaping @Sendable () -> Void) {
        let isAbandoned = state.withLock { state in
            state.life.failure != nil || state.requests.awaitAbandonment(of: token, notify)
        }
        if isAbandoned { notify() }
    }

    /// A reply under the token has come, or is no longer wanted.
    func endAwaited(_ token: UInt64) -> ReplyTarget? {
        let target = removeAwaited(token)
        target?.didEndAsking()
        return target
    }

    /// A reply under the token will not come.
    func failAwaited(_ token: UInt64, _ error: PortError) { removeAwaited(token)?.failAsking(error) }

    private func removeAwaited(_ token: UInt64) -> ReplyTarget? {
        let (target, isDone) = state.withLock { state in
            (state.requests.end(token), !isPortsEnd && state.isDone)
        }
        if isDone { close(PortError(.deadName)) }
        return target
    }

    /// Stops awaiting a reply under the token. The target is not notified.
    func forget(token: UInt64) { if token != 0 { _ = endAwaited(token) } }

    /// Stops awaiting a reply for the receiver.
    func forget(_ receiver: any ReplyReceiver) {
        guard let token = receiver.token(over: self) else { return }
        // An abandoned request may come here before the peer was notified; then this notifies it.
        if receiver.pollAbandonment() { giveUp(token: token) } else { forget(token: token) }
    }

    /// The run-loop source that receives replies, if there is one.
    var knownReplySource: RunLoopSource? { state.withLock { $0.source } }

    /// The run-loop source that receives replies, and notices the peer's end; nil when the connection is closed.
    ///
    /// - Throws: `descriptorLimit`; `systemCallFailed` when a loop polls the ring and no thread can be started that ends
    ///   this. The connection goes on.
    package func replySource() throws(PortError) -> RunLoopSource? {
        if let source = knownReplySource { return source }
        if isBusyPolled { _ = try IOThread.loop() }
        // A wait for a reply, or for the peer's end, is in a run that other items keep alive.
        let made = RunLoopSource(
            label: .portReplies, keepsModeAlive: false, routine: ReplyRoutine(connection: self))
        try PortError.converting(made.watch(pollable: descriptor.rawValue))
        let source = state.withLock { state in
            if state.life.failure == nil && state.source == nil { state.source = made }
            return state.source
        }
        endPollingWhileHandlingSoon()
        return source
    }

    /// Delivers the notice, on its loop, when the connection ends.
    func awaitDeath(_ notice: DeathNotice) throws(PortError) {
        let source = try replySource()
        // Added first: a request that ends meanwhile leaves the source in the loop.
        let hasEnded = state.withLock { state in
            let hasEnded = state.life.failure != nil || state.life.hasLostOtherPort
            if !hasEnded { state.coldState.deathNotices.append(notice) }
            return hasEnded
        }
        if hasEnded { return PeerEndWatch.deliver([notice], of: self) }
        do throws(PortError) {
            if let source { try notice.loop.addOrThrow(source, to: notice.mode) }
        } catch {
            // A notice that was delivered meanwhile needs no more.
            let wasPending = state.withLock { state in
                let count = state.coldState.deathNotices.count
                state.coldState.deathNotices.removeAll { $0 === notice }
                return state.coldState.deathNotices.count < count
            }
            if wasPending { throw error }
        }
        // A loop that had ended before does not cancel the source.
        if notice.loop.hasEnded { forgetDeathNotices(on: notice.loop) }
    }

    /// Removes a notice. A connection that was retained for it alone ends.
    func forgetDeathNotice(_ notice: DeathNotice) { forgetDeathNotices { $0 === notice } }

    /// Whether a notice of the connection's end is due on the loop, in the mode or in the common modes.
    func hasDeathNotice(on loop: ThreadRunLoop, in mode: RunLoopMode) -> Bool {
        state.withLock { state in
            state.coldState.deathNotices.contains { $0.loop == loop && ($0.mode == mode || $0.mode == .common) }
        }
    }

    /// A loop's thread has ended: removes its notices.
    fileprivate func forgetDeathNotices(on loop: ThreadRunLoop) { forgetDeathNotices { $0.loop == loop } }

    private func forgetDeathNotices(where isForgotten: (DeathNotice) -> Bool) {
        if isInherited { return }
        let (forgotten, isDone) = state.withLock { state in
            let all = state.removeDeathNotices()
            let rest = all.filter { !isForgotten($0) }
            if !rest.isEmpty { state.coldState.deathNotices = rest }
            return (all, !isPortsEnd && state.isDone)
        }
        if isDone { close(PortError(.deadName)) }
        withExtendedLifetime(forgotten) {}  // a user's handler is released without the lock
    }
}

extension SourceLabel {
    static let portReplies = SourceLabel("port replies")
}

/// Receives replies, and notices the end of the peer, for code that waits on a loop.
private struct ReplyRoutine: SourceRoutine {
    weak let connection: SocketConnection?

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        if loop.hasEnded { connection?.forgetDeathNotices(on: loop) }
    }

    func visitPollables(_ body: (any BusyPollable) -> Void) {
        if let connection, connection.hasRings { body(connection) }
    }

    func isReady() -> Bool { connection?.hasReadableData ?? false }

    func perform() -> SourceOutcome {
        guard let connection, !connection.isInherited else { return .nothing }
        connection.receive(into: connection.sink)
        connection.pauseSource()
        connection.signalSource()
        return .nothing
    }
}
