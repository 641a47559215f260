// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem

extension PortWorker {
    /// Ends the worker in order, and waits until it is gone.
    ///
    /// First it is asked with the message, if there is one and the worker has checked in. One that has not ended when the
    /// limit has passed is told: a thread to stop after what it does now, a process with `SIGTERM`. A process that runs on
    /// until the limit has passed once more is killed. Then ``port`` is invalidated: what the worker sent there and nobody
    /// has received bounces. May be called again, also by several threads. Traps on the worker's own thread.
    ///
    /// - Parameters:
    ///   - message: what makes the worker leave, as it agreed with its launcher; nil to tell it at once.
    ///   - limit: how long each of the two or three steps may take.
    /// - Returns: how the worker ended.
    /// - Throws: ``PortError/Code/workerStillRunning`` when a thread does not return to its loop in time; it ends when it
    ///   does. For a process, when the kernel does not end it in time.
    @discardableResult
    public func shutDown(asking message: MachMessage? = nil, within limit: Duration = .seconds(5)) throws(PortError)
        -> WorkerExit
    {
        try Self.shutDown([self], asking: message, within: limit)[0]
    }

    /// Ends several workers, all at once.
    static func shutDown(_ workers: [PortWorker], asking message: MachMessage?, within limit: Duration)
        throws(PortError) -> [WorkerExit]
    {
        defer { for worker in workers { worker.port.invalidate() } }
        if let message {
            let deadline = MonotonicInstant.after(limit)
            let asked = workers.filter { $0.ask(message, until: deadline) }
            for worker in asked { _ = worker.waitForExit(until: deadline) }
        }
        for signal in [SIGTERM, SIGKILL] {
            let running = workers.filter { $0.exit == nil }
            let deadline = MonotonicInstant.after(limit)
            for worker in running { worker.tellToEnd(signal) }
            for worker in running { _ = worker.waitForExit(until: deadline) }
        }
        var exits: [WorkerExit] = []
        for worker in workers {
            // A thread has noted its end a moment before it is gone.
            guard worker.exit != nil, let exit = worker.waitForExit(until: .after(limit)) else {
                throw PortError(.workerStillRunning, subject: .worker(worker.identity))
            }
            exits.append(exit)
        }
        return exits
    }

    /// - Returns: whether the worker got the message.
    private func ask(_ message: MachMessage, until deadline: MonotonicInstant) -> Bool {
        guard exit == nil, let right = sendRight else { return false }
        return (try? right.destination.send(message, until: deadline)) != nil
    }

    private func tellToEnd(_ signal: CInt) {
        thread?.stop()
        if let process = record.process { try? sysSignal(process.rawValue, signal) }
    }
}
