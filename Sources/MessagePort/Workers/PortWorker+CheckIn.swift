// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension PortWorker {
    /// Waits until the worker has checked in, and returns the right to its port.
    ///
    /// The calling thread's run loop waits in a private mode, in which nothing else runs. Several threads may wait, and
    /// later callers are answered at once. What the worker sends before it checks in is queued at ``port``. A worker
    /// that fills that queue waits there, and checks in once messages were received.
    ///
    /// - Parameter limit: the longest time to wait; zero or less checks once.
    /// - Returns: the right to the worker's port.
    /// - Throws: ``PortError/Code/workerExited``, with the way it ended, when the worker ended without checking in;
    ///   ``PortError/Code/checkInTimedOut`` when the limit has passed: the worker keeps running, and the call can be
    ///   repeated; ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the worker cannot be
    ///   watched; ``PortError/Code/forkedProcess``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func checkIn(within limit: Duration) throws(PortError) -> SendRight {
        try Self.checkIn([self], until: .after(limit), WorkerWait())[0]
    }

    /// Suspends the task until the worker has checked in, and returns the right to its port.
    ///
    /// It starts a thread that waits meanwhile.
    ///
    /// - Parameter limit: the longest time to wait.
    /// - Returns: the right to the worker's port.
    /// - Throws: what the blocking form throws; `CancellationError` when the task was cancelled: the worker keeps
    ///   running.
    nonisolated(nonsending) public func checkIn(within limit: Duration) async throws -> SendRight {
        try await waitOffThePool { [self] wait in
            try Self.checkIn([self], until: .after(limit), wait)[0]
        }
    }

    /// Waits until all have checked in, or one has ended without doing so.
    ///
    /// - Returns: the rights to the workers' ports.
    static func checkIn(_ workers: [PortWorker], until deadline: MonotonicInstant, _ wait: WorkerWait)
        throws(PortError) -> [SendRight]
    {
        for worker in workers { try worker.record.checkProcess() }
        func mustWait() -> Bool {
            let missing = workers.filter { $0.sendRight == nil }
            return !missing.isEmpty && missing.allSatisfy { $0.record.exit == nil }
        }
        if mustWait() { try wait.wait(for: workers, until: deadline, while: mustWait) }
        var rights: [SendRight] = []
        var late: PortError?
        for worker in workers {
            switch worker.outcome() {
            case .success(let right): rights.append(right)
            // Report the one that has ended, not those that would have come later.
            case .failure(let error) where error.code == .workerExited: throw error
            case .failure(let error): late = late ?? error
            }
        }
        if let late { throw late }
        return rights
    }

    /// The right, or why there is none.
    private func outcome() -> Result<SendRight, PortError> {
        let exit = record.exit
        // A worker may have checked in and ended at once: then its message is still there.
        if exit != nil, sendRight == nil { receiveLastMessages() }
        if let right = sendRight { return .success(right) }
        return .failure(PortError(exit == nil ? .checkInTimedOut : .workerExited, subject: .worker(identity, exit)))
    }

    /// Receives what a worker that has ended sent before, up to its check-in, or as far as there is room.
    private func receiveLastMessages() {
        repeat {
            port.core.receiveFromSockets()
        } while sendRight == nil && port.core.hasRoomForSockets() && hasUnreadMessages
    }

    /// Whether the process's connection has unread data, or has ended.
    private var hasUnreadMessages: Bool {
        guard case .process(let id) = identity, let sockets = port.core.sockets else { return false }
        let members = sockets.state.withLock { Array($0.members.values) }
        guard let connection = members.first(where: { $0.peer.processID == id && !$0.isClosed }) else { return false }
        let seen = try? sysPoll(connection.descriptor.rawValue, .readable, until: .distantPast)
        return seen?.isEmpty == false
    }
}
