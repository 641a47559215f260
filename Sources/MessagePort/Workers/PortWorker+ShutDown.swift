// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

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

    /// Ends several workers, all at once, on a thread of its own.
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
            for worker in running { worker.tellToEnd(signal) }
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

    private func tellToEnd(_ signal: CInt) {
        thread?.stop()
        try? record.process?.signal(signal)
    }
}
