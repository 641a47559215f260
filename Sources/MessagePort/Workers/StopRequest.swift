// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// A request that a worker leave, from the moment at which it is due until the worker has ended.
///
/// It is used on one thread; notices to that thread's loop arrive there.
private final class StopRequest: Sendable {
    private enum Stage: UInt8, AtomicRepresentable {
        case due
        /// The loop will be notified of room; then it is due again.
        case awaitingRoom
        case sent
    }

    let worker: PortWorker
    private let right: SendRight
    private let message: MachMessage
    private let stage = Atomic<Stage>(.due)

    /// Nil for a worker that has not checked in, or has ended. Traps on the worker's own thread.
    init?(to worker: PortWorker, _ message: MachMessage) {
        guard worker.waitForExit(until: .distantPast) == nil, let right = worker.sendRight else { return nil }
        self.worker = worker
        self.right = right
        self.message = message
    }

    /// Whether there is still something to wait for.
    func pollOpen() -> Bool { worker.record.exit == nil && (stage.load(ordering: .relaxed) == .sent || !right.isDead) }

    /// Sends it, once, if there is room.
    ///
    /// - Returns: when there is none, what wakes the loop when there is.
    func send(orWake loop: ThreadRunLoop) -> LoopNotification<SendPossibility>? {
        if stage.load(ordering: .relaxed) != .due { return nil }
        do throws(PortError) {
            try right.destination.send(message, until: .never)
            stage.store(.sent, ordering: .relaxed)
            return nil
        } catch {
            guard error.code == .sendTimedOut else { return nil }
        }
        stage.store(.awaitingRoom, ordering: .relaxed)
        let notice = LoopNotification<SendPossibility>(on: loop, in: .workerWait) { [self] _ in
            stage.store(.due, ordering: .relaxed)
        }
        do throws(PortError) {
            try right.destination.watchRoom(notice)
            return notice
        } catch {
            // There is no descriptor for it: anything else that wakes the loop has it try again.
            notice.cancel()
            stage.store(.due, ordering: .relaxed)
            return nil
        }
    }

    /// Waits without a loop.
    func wait(until deadline: MonotonicInstant) {
        if stage.load(ordering: .relaxed) != .sent {
            do throws(PortError) {
                try right.destination.send(message, until: .instant(deadline))
            } catch {
                return
            }
        }
        _ = worker.waitForExit(until: deadline)
    }
}

extension PortWorker {
    /// Asks the workers that have checked in to leave, and waits until those have ended.
    ///
    /// A worker without room for the request does not delay the others: it gets the request when it has room. Meanwhile
    /// this receives what the workers send, for a worker that waits for room itself may have none.
    static func ask(_ workers: [PortWorker], _ message: MachMessage, until deadline: MonotonicInstant) {
        let stopRequests = workers.compactMap { StopRequest(to: $0, message) }
        let loop = ThreadRunLoop.current
        var notices: [LoopNotification<SendPossibility>] = []
        defer { for notice in notices { notice.cancel() } }
        func mustWait() -> Bool {
            notices = notices.filter { !$0.isOver } + stopRequests.compactMap { $0.send(orWake: loop) }
            return stopRequests.contains { $0.pollOpen() }
        }
        guard mustWait() else { return }
        do throws(PortError) {
            try WorkerWait().wait(
                for: stopRequests.map(\.worker), receivingAll: true, until: deadline, while: mustWait)
        } catch {
            // The workers cannot be watched, but this can wait for them one after the other.
            for stopRequest in stopRequests { stopRequest.wait(until: deadline) }
        }
    }
}
