// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
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

// MARK: - Shutdown

extension PortWorker {
    /// Ends the worker in order, and waits until it is gone.
    ///
    /// First it sends the worker the message, if there is one and the worker has checked in; the message waits for
    /// room. A worker that has not ended when the limit has passed is stopped: a thread stops after its current work, a
    /// process gets `SIGTERM`. A process that runs on until the limit has passed once more is killed. Then ``port`` is
    /// invalidated: unreceived messages of the worker bounce. May be called again, also by several threads. Traps on
    /// the worker's own thread.
    ///
    /// After the message was sent, the calling thread's run loop waits in a private mode, in which nothing else runs.
    /// What the worker sends before it leaves comes to the queue of ``port`` meanwhile, as far as there is room. To
    /// receive it, schedule the port on another thread.
    ///
    /// - Parameters:
    ///   - message: what makes the worker leave, as it agreed with its launcher; nil to stop it at once.
    ///   - limit: how long each of the two or three steps may take.
    /// - Returns: how the worker ended.
    /// - Throws: ``PortError/Code/workerStillRunning`` when a thread does not return to its loop in time; it ends when
    ///   it does. For a process, when the kernel does not end it in time. ``PortError/Code/forkedProcess``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public func shutDown(asking message: MachMessage? = nil, within limit: Duration = .seconds(5)) throws(PortError)
        -> WorkerExit
    {
        try Self.shutDown([self], asking: message, within: limit)[0]
    }

    /// Ends the worker in order, and suspends the task until it is gone.
    ///
    /// It starts a thread that does so meanwhile. Cancelling the task changes nothing: the call waits for an end that
    /// has begun.
    ///
    /// - Parameters:
    ///   - message: what makes the worker leave, as it agreed with its launcher; nil to stop it at once.
    ///   - limit: how long each of the two or three steps may take.
    /// - Returns: how the worker ended.
    /// - Throws: ``PortError``, as the blocking form; `systemCallFailed` when the system gives no thread: nothing was
    ///   done then.
    @discardableResult
    nonisolated(nonsending) public func shutDown(
        asking message: MachMessage? = nil, within limit: Duration = .seconds(5)
    )
        async throws -> WorkerExit
    {
        try await Self.shutDownOffThePool([self], asking: message, within: limit)[0]
    }

    /// Ends several workers, all at once, on a separate thread.
    nonisolated(nonsending) static func shutDownOffThePool(
        _ workers: [PortWorker], asking message: MachMessage?, within limit: Duration
    ) async throws -> [WorkerExit] {
        // As a `Result`, so that an error is reported even when the task was cancelled, too.
        let result = try await waitOffThePool { _ in
            Result { () throws(PortError) in try shutDown(workers, asking: message, within: limit) }
        }
        return try result.get()
    }

    /// Ends several workers, all at once.
    static func shutDown(_ workers: [PortWorker], asking message: MachMessage?, within limit: Duration)
        throws(PortError) -> [WorkerExit]
    {
        for worker in workers { try worker.record.checkProcess() }
        defer { for worker in workers { worker.port.invalidate() } }
        if let message { ask(workers, message, until: .after(limit)) }
        for signal in [SIGTERM, SIGKILL] {
            let running = workers.filter { $0.exit == nil }
            let deadline = MonotonicInstant.after(limit)
            for worker in running { worker.requestStop(signal) }
            for worker in running { _ = worker.waitForExit(until: deadline) }
        }
        var exits: [WorkerExit] = []
        for worker in workers {
            // A thread records its end a moment before it is gone.
            guard worker.exit != nil, let exit = worker.waitForExit(until: .after(limit)) else {
                throw PortError(.workerStillRunning, subject: .worker(worker.identity))
            }
            exits.append(exit)
        }
        return exits
    }

    private func requestStop(_ signal: CInt) {
        thread?.stop()
        try? record.process?.signal(signal)
    }
}
