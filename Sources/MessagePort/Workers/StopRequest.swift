// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

/// A request that a worker leave, from the moment at which it is due until the worker has ended.
private struct StopRequest {
    let worker: PortWorker
    private let right: SendRight
    private let message: MachMessage
    private var isSent = false
    /// Wakes the loop when there is room, and is over then.
    private(set) var notice: LoopNotification<SendPossibility>?

    /// Nil for a worker that has not checked in, or has ended. Traps on the worker's own thread.
    init?(to worker: PortWorker, _ message: MachMessage) {
        guard worker.waitForExit(until: .distantPast) == nil, let right = worker.sendRight else { return nil }
        (self.worker, self.right, self.message) = (worker, right, message)
    }

    /// Whether there is still something to wait for.
    func pollOpen() -> Bool { worker.record.exit == nil && (isSent || !right.isDead) }

    /// Sends it, once, if there is room; otherwise a notice wakes the loop when there is.
    mutating func send(orWake loop: ThreadRunLoop) {
        if isSent || notice?.isOver == false { return }
        do throws(PortError) {
            try right.destination.send(message, until: .never)
            isSent = true
            return
        } catch {
            guard error.code == .sendTimedOut else { return }
        }
        let room = LoopNotification<SendPossibility>(on: loop, in: .workerWait) { _ in }
        do throws(PortError) {
            try right.destination.awaitRoom(room)
            notice = room
        } catch {
            // There is no descriptor for it: anything else that wakes the loop has it try again.
            room.cancel()
        }
    }

    /// Waits without a loop.
    func wait(until deadline: MonotonicInstant) {
        do throws(PortError) {
            if !isSent { try right.destination.send(message, until: .instant(deadline)) }
        } catch {
            return
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
        var stopRequests = workers.compactMap { StopRequest(to: $0, message) }
        defer { for stopRequest in stopRequests { stopRequest.notice?.cancel() } }
        func mustWait() -> Bool {
            for index in stopRequests.indices { stopRequests[index].send(orWake: .current) }
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
