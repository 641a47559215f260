// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

extension RunLoopMode {
    /// The private mode in which a synchronous request waits by default: nothing else runs in it.
    /// `NSConnectionReplyMode`.
    public static let portReply = RunLoopMode(rawValue: "PortReplyMode")
}

extension SendRight {
    /// Sends a message and waits for its one reply. `CFMessagePortSendRequest` with a reply mode.
    ///
    /// The calling thread's run loop runs in `mode` while it waits, so it serves the sources, timers and observers of
    /// that mode, re-entrantly. In the default mode of this call nothing else runs. A stop of the loop does not end the
    /// wait; it takes effect afterwards. A reply that comes too late is dropped, never given to another request.
    ///
    /// In the default mode a request that could never be answered is refused: when the thread that serves the port
    /// itself waits in this way, directly or through others, for a port that this thread serves. Within a process it is
    /// refused before it is sent. In a circle through other processes one of the requests is refused when all have
    /// waited for 100 ms, or somewhat later. Unless it still waited for room, it was sent then, and its receiver is
    /// notified as if the time were up: ``PortError/delivery`` says which.
    ///
    /// That is detected for ports that only run loops serve, and not when a reply right may be elsewhere: it was taken
    /// out of its message, or the message outlived its handler, or went on to another process. A handler that passes a
    /// request to another thread to reply, and then makes a request itself, takes the right out first
    /// (``MachMessage/takeReplyRight()``): a copy of a message is indistinguishable from the message. None is found at a
    /// port on two loops of which one does not wait, nor one through a request larger than the connection to another
    /// process, while a part of it waits for room. What code adds to the mode `portReply` is not considered, unless it is
    /// a port: a request that this would end may be refused.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's. Its reply right is made by this call.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm. Over a right to a name, such a request is sent to the next
    ///     owner, once to each, when an owner ends before it has replied: within `replyLimit`, and each time within
    ///     `sendLimit`. Over other rights it means nothing.
    ///   - mode: the mode to run the current loop in; ``/RunLoopCore/RunLoopMode/common`` is no mode to run in and
    ///     traps.
    /// - Returns: the reply.
    /// - Throws: what `send(_:within:)` throws, when nothing was sent; ``PortError/Code/wouldDeadlock``; then
    ///   ``PortError/Code/replyTimedOut`` when no reply came in time, ``PortError/Code/replyDropped`` when the receiver
    ///   dropped the reply right unused, ``PortError/Code/peerDied`` when the port went away before it replied,
    ///   ``PortError/Code/remoteError`` when it replied with an error. ``PortError/delivery`` says whether the message
    ///   was read. When the time is up, the receiver is notified (``MachMessage/isCancelled``).
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        isIdempotent: Bool = false, mode: RunLoopMode = .portReply
    ) throws(PortError) -> MachMessage {
        do throws(PortError) {
            return try request(
                message, sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent, mode: mode, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    package func request(
        _ message: MachMessage, sendLimit: Duration, replyLimit: Duration, isIdempotent: Bool = false,
        mode: RunLoopMode, in group: RequestGroup?, confirming confirmation: SendConfirmation? = nil
    ) throws(PortError) -> MachMessage {
        var attempts = RequestAttempts(sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent)
        guard var owner = try destination.reach(until: attempts.sendDeadline) else {
            return try request(message, confirmation, &attempts, mode, in: group)
        }
        while true {
            do throws(PortError) {
                return try owner.request(message, confirmation, &attempts, mode, in: group)
            } catch {
                guard destination.outlives(owner.destination), attempts.mayRepeat(after: error) else {
                    throw attempts.outcome(error)
                }
            }
            do throws(PortError) {
                owner = try destination.reach(until: attempts.sendDeadline) ?? owner
            } catch {
                throw attempts.outcome(error)
            }
        }
    }

    /// Sends the request to its port once.
    private func request(
        _ message: MachMessage, _ confirmation: SendConfirmation?, _ attempts: inout RequestAttempts,
        _ mode: RunLoopMode, in group: RequestGroup?
    ) throws(PortError) -> MachMessage {
        // A port of this process has it in its queue when it was sent.
        if confirmation == .queued, destination.repliesInMemory {
            try destination.send(message.plain, until: .instant(attempts.sendDeadline))
            return MachMessage()
        }
        let (loop, isExclusive) = (ThreadRunLoop.current, mode == .portReply && attempts.mayWait)
        let isReused = isExclusive && destination is LocalPort
        let slot =
            isReused ? SlotCache.slot(on: loop) : ReplySlot(wakes: loop, for: destination, isExclusive: isExclusive)
        try group?.begin(slot)
        defer { group?.end(slot) }
        guard isExclusive else {
            return try request(message, confirmation, slot, on: loop, &attempts, mode)
        }
        return try waiting(on: loop, for: slot) { () throws(PortError) in
            try request(message, confirmation, slot, on: loop, &attempts, mode)
        }
    }

    private func request(
        _ message: MachMessage, _ confirmation: SendConfirmation?, _ slot: ReplySlot, on loop: ThreadRunLoop,
        _ attempts: inout RequestAttempts, _ mode: RunLoopMode
    ) throws(PortError) -> MachMessage {
        try destination.beginReplies(on: loop, in: mode)
        defer { destination.endReplies(on: loop, in: mode, to: slot) }
        // Only the receiver holds the right afterwards: when it drops the right, the slot is notified.
        do throws(PortError) {
            defer { loop.endBusyPolling() }  // receives a reply that is there already
            try destination.send(message.asking(slot, confirming: confirmation), until: .instant(attempts.sendDeadline))
        } catch {
            throw slot.failure(ofUnsent: error)
        }
        let replyLimit = attempts.didSend()
        if mode == .portReply {
            wait(on: loop, for: slot, within: replyLimit)
        } else {
            _ = loop.run(mode: mode, until: .after(replyLimit), while: { slot.isWaiting })
        }
        return try takeReply(from: slot)
    }

    private func takeReply(from slot: ReplySlot) throws(PortError) -> MachMessage {
        do throws(PortError) {
            return try slot.take()
        } catch {
            // Dropped because the port went away while its handler ran.
            if error.code == .replyDropped, destination.pollDeath() {
                throw PortError(.peerDied, delivery: error.delivery)
            }
            throw error
        }
    }
}

// MARK: - AsyncRequest

extension SendRight {
    /// Sends a message and suspends the task until its one reply comes. No thread waits, and no run loop runs.
    ///
    /// When the task is cancelled, the call ends at once and the receiver is notified (``MachMessage/isCancelled``,
    /// ``MachMessage/setCancellationHandler(on:in:_:)``). A reply that comes later is dropped, never given to another
    /// request. A task that is cancelled before the call, or while the message waits for room, sends nothing: the
    /// pieces of a large message that were already sent are discarded. In memory it waits in the one FIFO queue of all
    /// senders.
    ///
    /// One thread, which all asynchronous calls of the process share, receives the replies from other processes and
    /// learns of room in connections. A task that waits for room in a connection uses one descriptor meanwhile.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's. Its reply right is made by this call.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm, as in the blocking form.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:isIdempotent:mode:)``; ``PortError/Code/cancelled``.
    nonisolated(nonsending) public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        isIdempotent: Bool = false
    ) async throws(PortError) -> MachMessage {
        do throws(PortError) {
            return try await request(
                message, sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    nonisolated(nonsending) package func request(
        _ message: MachMessage, sendLimit: Duration, replyLimit: Duration, isIdempotent: Bool = false,
        in group: RequestGroup?, confirming confirmation: SendConfirmation? = nil
    ) async throws(PortError) -> MachMessage {
        var attempts = RequestAttempts(sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent)
        while true {
            if Task.isCancelled { throw attempts.outcome(PortError(.cancelled, delivery: .notSent)) }
            var owner = self
            do throws(PortError) {
                try destination.checkProcess()
                let sending = TaskWaiter(until: attempts.sendDeadline)
                defer { sending.finish() }
                owner = try await destination.reach(waiting: sending) ?? self
                return try await owner.request(message, confirmation, &attempts, in: group, sending)
            } catch {
                guard destination.outlives(owner.destination), attempts.mayRepeat(after: error) else {
                    throw attempts.outcome(error)
                }
            }
        }
    }

    /// Sends the request to its port once.
    nonisolated(nonsending) private func request(
        _ message: MachMessage, _ confirmation: SendConfirmation?, _ attempts: inout RequestAttempts,
        in group: RequestGroup?, _ sending: TaskWaiter
    ) async throws(PortError) -> MachMessage {
        if confirmation == .queued, destination.repliesInMemory {
            try await destination.send(message.plain, waiting: sending)
            return MachMessage()
        }
        let slot = ReplySlot(wakes: nil, for: destination)
        try group?.begin(slot)
        defer { group?.end(slot) }
        let loop = destination.repliesInMemory ? nil : try IOThread.loop()
        if let loop { try destination.beginReplies(on: loop, in: .default) }
        defer { if let loop { destination.endReplies(on: loop, in: .default, to: slot) } }
        // Only the receiver holds the right afterwards: when it drops the right, the slot is notified.
        try await destination.send(message.asking(slot, confirming: confirmation), waiting: sending)
        await slot.wait(within: attempts.didSend())
        return try takeReply(from: slot)
    }
}

extension ReplySlot {
    /// Suspends the task until something has come, the time is up, or the task is cancelled.
    nonisolated(nonsending) fileprivate func wait(within limit: Duration) async {
        if !isWaiting { return }
        if limit <= .zero { return giveUp(PortError(.replyTimedOut)) }
        let alarm = AlarmClock.shared.set(for: .after(limit)) { self.giveUp(PortError(.replyTimedOut)) }
        await withTaskCancellationHandler {
            await wait()
        } onCancel: {
            giveUp(PortError(.cancelled))
        }
        AlarmClock.shared.stop(alarm)
    }
}

// MARK: - Values

extension SendRight {
    /// Sends a value as a message of one part, waiting while the port's queue is full.
    ///
    /// - Parameters:
    ///   - content: the value.
    ///   - id: what the message is about.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: as `send(_:within:)`.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func send<Content: MessageContent>(_ content: Content, id: Int32 = 0, within limit: Duration)
        throws(PortError)
    {
        try send(MachMessage(id: id, content: content), within: limit)
    }

    /// Sends a value as a message of one part, and suspends the task while the port's queue is full.
    ///
    /// - Parameters:
    ///   - content: the value.
    ///   - id: what the message is about.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``. Nothing was delivered then.
    nonisolated(nonsending) public func send<Content: MessageContent>(
        _ content: Content, id: Int32 = 0, within limit: Duration
    ) async throws(PortError) {
        try await send(MachMessage(id: id, content: content), within: limit)
    }

    /// Sends a value and waits for the one reply, a value too.
    ///
    /// - Parameters:
    ///   - content: the value to send.
    ///   - reply: what the reply is.
    ///   - id: what the message is about.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm, as for messages.
    ///   - mode: the mode to run the current loop in.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:isIdempotent:mode:)``; ``PortError/Code/malformedContent`` when the
    ///   reply is not such a value.
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10), isIdempotent: Bool = false, mode: RunLoopMode = .portReply
    ) throws(PortError) -> Reply {
        try request(
            MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit,
            isIdempotent: isIdempotent, mode: mode
        ).content()
    }

    /// Sends a value and suspends the task until its one reply comes, a value too.
    ///
    /// - Parameters:
    ///   - content: the value to send.
    ///   - reply: what the reply is.
    ///   - id: what the message is about.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm, as for messages.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:isIdempotent:)``; ``PortError/Code/malformedContent`` when the
    ///   reply is not such a value.
    nonisolated(nonsending) public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10), isIdempotent: Bool = false
    ) async throws(PortError) -> Reply {
        try await request(
            MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit,
            isIdempotent: isIdempotent
        ).content()
    }
}
