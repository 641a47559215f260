// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension RunLoopMode {
    /// The mode in which a thread waits for workers: nothing else runs in it.
    static let workerWait = RunLoopMode(rawValue: "PortWorkerMode")
}

/// A wait for workers, on the calling thread's loop, and how to end it from elsewhere. A task does not wait as a
/// `TaskWaiter` does: its wait runs a loop, on a thread of its own, and to cancel it is to wake that loop.
final class WorkerWait: Sendable {
    private let state = Mutex<(isCancelled: Bool, loop: ThreadRunLoop?)>((false, nil))

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Ends the wait, or keeps it from beginning.
    func cancel() {
        let loop = state.withLock { state in
            state.isCancelled = true
            return state.loop
        }
        loop?.wakeUp()
    }

    /// Waits in a private mode, while the condition holds, which is called on this thread after each event: receives the
    /// workers' check-ins, if `receivesAll` also what they send after that, as far as there is room, and notices their
    /// ends.
    ///
    /// - Throws: when the loop cannot watch the workers' descriptors.
    func wait(
        for workers: [PortWorker], receivingAll receivesAll: Bool = false, until deadline: MonotonicInstant,
        while condition: () -> Bool
    ) throws(PortError) {
        let loop = ThreadRunLoop.current
        state.withLock { $0.loop = loop }
        var sources: [RunLoopSource] = []
        var waits: [MessageWait] = []
        for worker in workers { worker.record.beginWait(on: loop) }
        defer {
            for worker in workers {
                worker.record.endWait(on: loop)
                worker.record.forget(sources)
            }
            for index in waits.indices { waits[index].end() }
            for source in sources { source.invalidate() }
        }
        for worker in workers {
            if let wait = try MessageWait(worker, continuesAfterCheckIn: receivesAll) {
                waits.append(wait)
                sources.append(wait.source)
            }
            if let process = worker.record.process { sources.append(worker.endSource(process)) }
            // What came before the wait began.
            worker.port.localPort.receiveFromSockets()
            worker.record.reap()
        }
        for source in sources { try loop.addOrThrow(source, to: .workerWait) }
        _ = loop.run(
            mode: .workerWait, until: deadline,
            while: {
                for index in waits.indices { waits[index].update(on: loop) }
                return !isCancelled && condition()
            })
    }
}

/// Receives a worker's check-in from the sockets of its launcher's port, and if it continues, what follows.
///
/// Other messages of the worker are for the port, and are not dequeued here. So once the worker has checked in and the
/// wait does not continue, or the port's queue is full, the sockets may stay readable: then they are not watched.
private struct MessageWait {
    let source: RunLoopSource
    private let localPort: LocalPort
    private let record: WorkerRecord
    private let continuesAfterCheckIn: Bool
    private var isOver = false
    /// Waits for room in the port's queue.
    private var notice: LoopNotification<SendPossibility>?

    /// - Returns: nil when the worker has checked in and the wait does not continue, or its port is dead.
    init?(_ worker: PortWorker, continuesAfterCheckIn: Bool) throws(PortError) {
        if worker.sendRight != nil, !continuesAfterCheckIn { return nil }
        let localPort = worker.port.localPort
        (self.localPort, record, self.continuesAfterCheckIn) = (localPort, worker.record, continuesAfterCheckIn)
        source = RunLoopSource(
            name: "worker messages", readiness: { false }, perform: { localPort.receiveFromSockets() })
        guard try localPort.attach(source) else { return nil }
    }

    /// Updates whether the sockets are watched. Called before the loop sleeps.
    mutating func update(on loop: ThreadRunLoop) {
        if isOver { return }
        if record.right != nil, !continuesAfterCheckIn { return end() }
        if localPort.socketsAreBlocked {
            // Again each time: the end of a handler has all the port's sources watch the sockets.
            try? source.watch(pollable: nil)
            if let notice, !notice.isOver { return }
            let room = LoopNotification<SendPossibility>(on: loop, in: .workerWait) { _ in }
            notice = room
            // It only fails in a forked child, whose copy of the port never has room.
            try? localPort.awaitRoom(room)
        } else if notice?.isOver == true {
            notice = nil
            localPort.resume(source)
        }
    }

    mutating func end() {
        isOver = true
        notice?.cancel()
        localPort.detach(source)
        source.invalidate()
    }
}

extension PortWorker {
    /// The source that wakes a waiting loop at the end of the worker's process, and ends with it.
    fileprivate func endSource(_ process: LaunchedProcess) -> RunLoopSource {
        let source = RunLoopSource(
            name: "worker end", descriptor: process.rawValue, perform: { [record] in record.reap() })
        record.endWithWorker(source)
        return source
    }
}

/// Waits on a separate thread, so that the task blocks none meanwhile; cancelling the task ends the wait.
nonisolated(nonsending) func waitOffThePool<Success: Sendable>(
    _ body: @escaping @Sendable (WorkerWait) throws -> Success
) async throws -> Success {
    let wait = WorkerWait()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Success, any Error>) in
            do throws(SystemError) {
                // The thread ends when the wait is over; it is not joined.
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
