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
    /// itself waits in this way, directly or through others, for a port that this thread serves. That is detected in
    /// memory only, for ports that only run loops serve, and not when a reply right may be elsewhere: it was taken out
    /// of its message, or the message outlived its handler. A handler that passes a request to another thread to reply,
    /// and then makes a request itself, takes the right out first (``MachMessage/takeReplyRight()``): a copy of a
    /// message is indistinguishable from the message. A cycle through other processes is not detected: such a request
    /// ends at its limit.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's. Its reply right is made by this call.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - mode: the mode to run the current loop in; ``/RunLoopCore/RunLoopMode/common`` is no mode to run in and
    ///     traps.
    /// - Returns: the reply.
    /// - Throws: what `send(_:within:)` throws, and ``PortError/Code/wouldDeadlock``, when nothing was sent; then
    ///   ``PortError/Code/replyTimedOut`` when no reply came in time, ``PortError/Code/replyDropped`` when the receiver
    ///   dropped the reply right unused, ``PortError/Code/peerDied`` when the port went away before it replied,
    ///   ``PortError/Code/remoteError`` when it replied with an error. ``PortError/delivery`` says whether the message
    ///   was read. When the time is up, the receiver is notified (``MachMessage/isCancelled``).
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        mode: RunLoopMode = .portReply
    ) throws(PortError) -> MachMessage {
        do throws(PortError) {
            return try request(message, sendLimit: sendLimit, replyLimit: replyLimit, mode: mode, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    package func request(
        _ message: MachMessage, sendLimit: Duration, replyLimit: Duration, mode: RunLoopMode, in group: RequestGroup?
    ) throws(PortError) -> MachMessage {
        let deadline = MonotonicInstant.after(sendLimit)
        try destination.reach(until: deadline)
        let (loop, slot) = (ThreadRunLoop.current, ReplySlot(wakes: .current, for: destination))
        try group?.begin(slot)
        defer { group?.end(slot) }
        guard mode == .portReply, replyLimit > .zero else {
            return try request(message, slot, on: loop, until: deadline, replyLimit, mode)
        }
        return try waiting(on: loop, for: slot) { () throws(PortError) in
            try request(message, slot, on: loop, until: deadline, replyLimit, mode)
        }
    }

    private func request(
        _ message: MachMessage, _ slot: ReplySlot, on loop: ThreadRunLoop, until sendDeadline: MonotonicInstant,
        _ replyLimit: Duration, _ mode: RunLoopMode
    ) throws(PortError) -> MachMessage {
        try destination.beginReplies(on: loop, in: mode)
        defer { destination.endReplies(on: loop, in: mode, to: slot) }
        // Only the receiver holds the right afterwards: when it drops the right, the slot is notified.
        try destination.send(message.asking(slot), until: .instant(sendDeadline))
        _ = loop.run(mode: mode, until: .after(replyLimit), while: { slot.isWaiting })
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
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:mode:)``; ``PortError/Code/cancelled``.
    nonisolated(nonsending) public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10)
    ) async throws(PortError) -> MachMessage {
        do throws(PortError) {
            return try await request(message, sendLimit: sendLimit, replyLimit: replyLimit, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    nonisolated(nonsending) package func request(
        _ message: MachMessage, sendLimit: Duration, replyLimit: Duration, in group: RequestGroup?
    ) async throws(PortError) -> MachMessage {
        if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
        try destination.checkProcess()
        let sending = TaskWaiter(until: .after(sendLimit))
        defer { sending.finish() }
        try await destination.reach(waiting: sending)
        let slot = ReplySlot(wakes: nil, for: destination)
        try group?.begin(slot)
        defer { group?.end(slot) }
        let loop = destination.repliesInMemory ? nil : try IOThread.loop()
        if let loop { try destination.beginReplies(on: loop, in: .default) }
        defer { if let loop { destination.endReplies(on: loop, in: .default, to: slot) } }
        // Only the receiver holds the right afterwards: when it drops the right, the slot is notified.
        try await destination.send(message.asking(slot), waiting: sending)
        await slot.wait(within: replyLimit)
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
    ///   - mode: the mode to run the current loop in.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:mode:)``; ``PortError/Code/malformedContent`` when the reply is
    ///   not such a value.
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10), mode: RunLoopMode = .portReply
    ) throws(PortError) -> Reply {
        try request(
            MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit, mode: mode
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
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:)``; ``PortError/Code/malformedContent`` when the reply is not
    ///   such a value.
    nonisolated(nonsending) public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10)
    ) async throws(PortError) -> Reply {
        try await request(MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit).content()
    }
}
