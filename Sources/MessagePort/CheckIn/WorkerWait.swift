// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension RunLoopMode {
    /// The mode in which a thread waits for workers: nothing else runs in it.
    static let workerWait = RunLoopMode(rawValue: "PortWorkerMode")
}

/// A wait for workers, on the calling thread's loop, and how to end it from elsewhere.
final class WorkerWait: Sendable {
    private struct State {
        var isCancelled = false
        var loop: ThreadRunLoop?
    }

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Ends the wait, or keeps it from beginning.
    func cancel() {
        let loop = state.withLock { state in
            state.isCancelled = true
            return state.loop
        }
        loop?.wakeUp()
    }

    /// Waits in a private mode: receives the workers' check-ins, and notices their ends.
    ///
    /// - Parameters:
    ///   - workers: who is waited for.
    ///   - deadline: when to give up.
    ///   - condition: whether to go on; asked on this thread, whenever something has happened.
    /// - Throws: when the loop cannot watch the workers' descriptors.
    func wait(for workers: [PortWorker], until deadline: MonotonicInstant, while condition: () -> Bool)
        throws(PortError)
    {
        let loop = ThreadRunLoop.current
        state.withLock { $0.loop = loop }
        var sources: [RunLoopSource] = []
        for worker in workers { worker.record.beginWait(on: loop) }
        defer {
            for worker in workers {
                worker.record.endWait(on: loop)
                worker.record.forget(sources)
                for source in sources { worker.port.core.detach(source) }
            }
            for source in sources { source.invalidate() }
        }
        for worker in workers {
            try worker.addSources(to: &sources)
            // What came before we began to watch.
            worker.port.core.receiveFromSockets()
            worker.record.reap()
        }
        for source in sources { try loop.addOrThrow(source, to: .workerWait) }
        _ = loop.run(mode: .workerWait, until: deadline, while: { !isCancelled && condition() })
    }
}

extension PortWorker {
    /// Makes the sources through which a waiting loop hears of this worker.
    fileprivate func addSources(to sources: inout [RunLoopSource]) throws(PortError) {
        let messages = RunLoopSource(
            name: "worker check-in", readiness: { false }, perform: { [port] in port.core.receiveFromSockets() })
        if try port.core.attach(messages) { sources.append(messages) }
        guard let process = record.process else { return }
        let end = RunLoopSource(
            name: "worker end", descriptor: process.rawValue, perform: { [record] in record.reap() })
        sources.append(end)
        record.endWithWorker(end)
    }
}

/// Does a wait on a thread of its own, so that the task holds none meanwhile; cancelling the task ends the wait.
nonisolated(nonsending) func waitOffThePool<Success: Sendable>(
    _ body: @escaping @Sendable (WorkerWait) throws -> Success
) async throws -> Success {
    let wait = WorkerWait()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Success, any Error>) in
            do throws(SystemError) {
                // Its thread goes when the wait is over; nobody joins it.
                _ = try sysStartThread(blocksSignals: true) {
                    sysNameThread("port worker wait")
                    let result = Result { try body(wait) }
                    if case .failure = result, wait.isCancelled {
                        continuation.resume(throwing: CancellationError())
                    } else {
                        continuation.resume(with: result)
                    }
                }
            } catch {
                continuation.resume(throwing: PortError(error))
            }
        }
    } onCancel: {
        wait.cancel()
    }
}
