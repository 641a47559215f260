// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

extension RunLoopMode {
    /// The private mode in which a synchronous request waits by default: nothing else runs in it.
    /// `NSConnectionReplyMode`, row S26 of the documents.
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

// MARK: - AsyncSend

extension SendRight {
    /// Sends a message and suspends the task while the port's queue is full.
    ///
    /// Otherwise as the blocking form: messages of one task over one right arrive in the order in which they were sent.
    /// A task that is cancelled before the call sends nothing; the asynchronous `request` documents how soon a
    /// cancellation ends the wait for room. ``trySend(_:)`` never waits, so it needs no such form.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``. Nothing was delivered then.
    nonisolated(nonsending) public func send(_ message: MachMessage, within limit: Duration) async throws(PortError) {
        if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
        let sending = TaskWaiter(until: .after(limit))
        defer { sending.finish() }
        do throws(PortError) {
            try await destination.send(message, waiting: sending)
        } catch {
            throw destination.naming(error)
        }
    }
}

// MARK: - CurrentLoop

// For code that has a thread of its own: the loop is that thread's. A task names a loop.
extension SendRight {
    /// Asks for one notice, on the current thread's run loop, when the port is gone. See ``notifyWhenDead(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread; soon when the port is gone already.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenDead(on:)`.")
    @discardableResult
    public func notifyWhenDead(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenDead(on: .current, in: mode, handler)
    }

    /// Asks for one notice, on the current thread's run loop, when there is room. See
    /// ``notifyWhenSendPossible(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenSendPossible(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenSendPossible(on:)`.")
    @discardableResult
    public func notifyWhenSendPossible(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenSendPossible(on: .current, in: mode, handler)
    }
}

extension SendOnceRight {
    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }
}

extension MachMessage {
    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits for the reply.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread. It should not hold the message.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }
}

// MARK: - Notices

extension SendRight {
    /// Asks for one notice, on a run loop, when a message may be sent: for use after ``trySend(_:)`` found the queue
    /// full. `MACH_NOTIFY_SEND_POSSIBLE`.
    ///
    /// Each request is answered exactly once: soon when there is room already, and when the port is gone. It is dropped
    /// when the loop's thread ends. It reserves no slot: when several wait for room, all are notified, and one that
    /// finds the queue full again asks again. For a port of another process, room means room in the connection: its
    /// queue may still be full then, and the message waits in the kernel. While the notice waits there, it uses one
    /// descriptor, and retains the connection.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``: nothing is watched then.
    @discardableResult
    public func notifyWhenSendPossible(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common,
        _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try destination.checkProcess()  // before the loop's lock is acquired
        return try NoticeRequest.pending(on: loop, in: mode, handler, destination.watchRoom)
    }
}
