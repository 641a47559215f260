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
    /// itself waits so, directly or through others, for a port that this thread serves. That is detected in memory
    /// only, for ports that only run loops serve, and not when a reply right may be elsewhere: it was taken out of its
    /// message, or the message outlived its handler. A handler that passes a request to another thread to reply, and
    /// then makes a request itself, takes the right out first (``MachMessage/takeReplyRight()``): a copy of a message
    /// is indistinguishable from the message. A circle through other processes is not detected: such a request ends at
    /// its limit.
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
        do throws(PortError) {
            return try slot.take()
        } catch {
            // Dropped because the port went away while its handler ran.
            if error.code == .replyDropped, destination.isDead {
                throw PortError(.peerDied, delivery: error.delivery)
            }
            throw error
        }
    }
}
