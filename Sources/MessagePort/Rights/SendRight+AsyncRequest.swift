// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

extension SendRight {
    /// Sends a message and suspends the task until its one reply comes. No thread waits, and no run loop runs.
    ///
    /// When the task is cancelled, the call ends at once and the receiver is told (``MachMessage/isCancelled``,
    /// ``MachMessage/setCancellationHandler(on:in:_:)``). A reply that comes later is dropped, never given to another
    /// request. A task that is cancelled before the call sends nothing. While the message waits for room, or its pieces are
    /// on their way, a cancellation takes effect after that, at the latest at the send limit.
    ///
    /// Replies from other processes are received by one thread, which all asynchronous calls of the process share.
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
        if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
        try destination.checkProcess()
        let slot = ReplySlot(wakes: nil, for: destination)
        let loop = destination.repliesInMemory ? nil : try SharedReceiver.loop()
        if let loop { try destination.beginReplies(on: loop, in: .default) }
        defer { if let loop { destination.endReplies(on: loop, in: .default, to: slot) } }
        var request = message
        request.replyTarget = ReplyTarget(slot)
        try await send(request, until: .after(sendLimit))
        request.replyTarget = nil  // only the receiver holds the right now: when it lets go, the slot hears of it
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

    /// Sends, and never keeps a thread of the caller's pool waiting: a thread of its own waits for room.
    nonisolated(nonsending) private func send(_ message: MachMessage, until deadline: MonotonicInstant)
        async throws(PortError)
    {
        let failure: PortError?
        do throws(PortError) {
            try destination.send(message, until: .distantPast)
            return
        } catch {
            if error.code != .sendTimedOut || deadline <= .now { throw error }
            failure = await blockingSend(message, until: deadline)
        }
        if let failure { throw failure }
    }

    nonisolated(nonsending) private func blockingSend(_ message: MachMessage, until deadline: MonotonicInstant)
        async -> PortError?
    {
        await withCheckedContinuation { continuation in
            let destination = destination
            do throws(SystemError) {
                _ = try sysStartThread(blocksSignals: true) {
                    sysNameThread("port-send")
                    do throws(PortError) {
                        try destination.send(message, until: deadline)
                        continuation.resume(returning: nil)
                    } catch {
                        continuation.resume(returning: error)
                    }
                }
            } catch {
                continuation.resume(returning: PortError(error))
            }
        }
    }
}

extension ReplySlot {
    /// Suspends the task until something has come, the time is up, or the task is cancelled.
    nonisolated(nonsending) fileprivate func wait(within limit: Duration) async {
        if !isWaiting { return }
        if limit <= .zero { return giveUp(PortError(.replyTimedOut)) }
        // A limit that never comes needs no alarm; the sleep would trap for one that its clock cannot count.
        let mayRing = MonotonicInstant.after(limit) < .distantFuture
        let alarm =
            !mayRing
            ? nil
            : Task {
                do { try await Task.sleep(for: limit, clock: .suspending) } catch { return }
                giveUp(PortError(.replyTimedOut))
            }
        await withTaskCancellationHandler {
            await wait()
        } onCancel: {
            giveUp(PortError(.cancelled))
        }
        alarm?.cancel()
    }
}
