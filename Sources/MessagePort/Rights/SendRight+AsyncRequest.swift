// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

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
        let sending = SendWait(until: .after(sendLimit))
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
        do throws(PortError) {
            return try slot.take()
        } catch {
            if error.code == .replyDropped, destination.isDead {
                throw PortError(.peerDied, delivery: error.delivery)
            }
            throw error
        }
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
