// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Sends that return when the message has arrived, and notices of messages that never did. Both are requests that are
// answered by the port, not by the program that receives: see `ReplyTarget.confirmation`.

import PortSystem
public import RunLoopCore
import Synchronization

extension SendRight {
    /// Sends a message that wants no reply, and waits until it is queued, taken, or handled.
    ///
    /// The calling thread's run loop runs in `mode` while it waits, as in
    /// ``request(_:sendLimit:replyLimit:isIdempotent:mode:)``, which also says when a send that could never be confirmed
    /// is refused. The receiver cannot distinguish the message from one that is not confirmed: it expects no reply
    /// (``MachMessage/expectsReply``).
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - confirmation: how far the message has got when the call returns.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - confirmationLimit: how long to wait then, from the moment at which the message was sent.
    ///   - mode: the mode to run the current loop in; ``/RunLoopCore/RunLoopMode/common`` is no mode to run in and
    ///     traps.
    /// - Throws: what `send(_:within:)` throws, when nothing was sent; ``PortError/Code/wouldDeadlock``; then
    ///   ``PortError/Code/messageDropped`` when the queue's policy dropped the message, ``PortError/Code/peerDied`` when
    ///   the port went away before, ``PortError/Code/messageTooLarge`` when the port does not accept so large a message,
    ///   ``PortError/Code/replyTimedOut`` when no confirmation came in time: the message may still be taken.
    ///   ``PortError/delivery`` says whether it was.
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration = .seconds(10),
        confirmationLimit: Duration = .seconds(10), mode: RunLoopMode = .portReply
    ) throws(PortError) {
        do throws(PortError) {
            try send(
                message, confirming: confirmation, sendLimit: sendLimit, confirmationLimit: confirmationLimit,
                mode: mode, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    package func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration,
        confirmationLimit: Duration, mode: RunLoopMode, in group: RequestGroup?
    ) throws(PortError) {
        _ = try request(
            message, sendLimit: sendLimit, replyLimit: confirmationLimit, mode: mode, in: group,
            confirming: confirmation)
    }

    /// Sends a message that wants no reply, and suspends the task until it is queued, taken, or handled.
    ///
    /// A task that is cancelled before the message was sent sends nothing. Afterwards the call ends at once, and the
    /// message goes its way.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - confirmation: how far the message has got when the call returns.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - confirmationLimit: how long to wait then, from the moment at which the message was sent.
    /// - Throws: what the blocking form throws, but for ``PortError/Code/wouldDeadlock``; ``PortError/Code/cancelled``.
    nonisolated(nonsending) public func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration = .seconds(10),
        confirmationLimit: Duration = .seconds(10)
    ) async throws(PortError) {
        do throws(PortError) {
            try await send(
                message, confirming: confirmation, sendLimit: sendLimit, confirmationLimit: confirmationLimit, in: nil)
        } catch {
            throw destination.naming(error)
        }
    }

    /// The same, for one of the requests of a group; the group's end ends it.
    nonisolated(nonsending) package func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration,
        confirmationLimit: Duration, in group: RequestGroup?
    ) async throws(PortError) {
        _ = try await request(
            message, sendLimit: sendLimit, replyLimit: confirmationLimit, in: group, confirming: confirmation)
    }

    /// Sends a message, waiting while the port's queue is full, and asks for one notice on a run loop if it bounces: if
    /// it was sent, and will never be taken out of the queue.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread when the message bounces, with the reason:
    ///     ``PortError/Code/messageDropped``, ``PortError/Code/peerDied``, ``PortError/Code/messageTooLarge`` or
    ///     ``PortError/Code/descriptorsLost``. Released, and never called, when the message is taken.
    /// - Returns: the request for the notice, with which it can be withdrawn.
    /// - Throws: what `send(_:within:)` throws. Nothing was delivered then, and no notice follows.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public func send(
        _ message: MachMessage, within limit: Duration, notifyingBounceOn loop: ThreadRunLoop,
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (PortError) -> Void
    ) throws(PortError) -> NoticeRequest {
        try NoticeRequest.pending(on: loop, in: mode, handler) { (notice) throws(PortError) in
            let receiver = BounceReceiver(notice)
            try send(message.asking(receiver, confirming: .taken), within: limit)
            receiver.didSend()
        }
    }

    /// Sends a message, suspending the task while the port's queue is full, and asks for one notice on a run loop if it
    /// bounces.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: as in the blocking form.
    /// - Returns: the request for the notice, with which it can be withdrawn.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``.
    @discardableResult
    nonisolated(nonsending) public func send(
        _ message: MachMessage, within limit: Duration, notifyingBounceOn loop: ThreadRunLoop,
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (PortError) -> Void
    ) async throws(PortError) -> NoticeRequest {
        try await NoticeRequest.pending(on: loop, in: mode, handler) { (notice) async throws(PortError) in
            let receiver = BounceReceiver(notice)
            try await send(message.asking(receiver, confirming: .taken), within: limit)
            receiver.didSend()
        }
    }
}

extension MachMessage {
    /// The same message without a reply right.
    var plain: MachMessage {
        var plain = self
        plain.replyTarget = nil
        return plain
    }
}

/// Waits for the confirmation of a message, and delivers a notice when none will come.
private final class BounceReceiver: ReplyReceiver {
    private struct State {
        /// Whether the message was sent: one that was not is released too.
        var isSent = false
        /// Why it has bounced.
        var failure: PortError?
        /// The thread that receives the confirmation of another process.
        var loop: ThreadRunLoop?
    }

    private let notice: LoopNotification<PortError>  // immutable
    private let state = Mutex(State())
    private let forkGuard = ForkGuard()  // immutable

    init(_ notice: LoopNotification<PortError>) { self.notice = notice }

    func didSend() {
        let failure = state.withLock { state in
            state.isSent = true
            return state.failure
        }
        if let failure { notice.notify(failure) }
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) { endNotice() }

    func confirm() { endNotice() }

    /// Releases the handler: not under the lock of a connection that is being read.
    private func endNotice() {
        if forkGuard.isInherited { return }
        if let loop = state.withLock({ $0.loop }) {
            loop.perform { [notice] in notice.cancel() }
        } else {
            notice.cancel()
        }
    }

    func fail(_ error: PortError) {
        if forkGuard.isInherited { return }
        let isSent = state.withLock { state in
            state.failure = error
            return state.isSent
        }
        if isSent { notice.notify(error) }
    }

    /// The I/O thread receives the confirmation.
    func expectReply(over connection: any ReplyConnection) throws(PortError) {
        let loop = try IOThread.loop()
        state.withLock { $0.loop = loop }
        if let source = try connection.replySource() { try loop.addOrThrow(source, to: .default) }
    }
}
