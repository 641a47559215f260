// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Workers that are launched, check in and end together.
///
/// - Important: Thread safety: any thread.
public final class PortWorkerPool: Sendable {
    /// The workers, in the order in which they were launched.
    public let workers: [PortWorker]

    /// How long each step may take that ends the workers after one of them failed: one second.
    public static let abandonLimit = Duration.seconds(1)

    /// Launches workers.
    ///
    /// - Parameters:
    ///   - count: how many; zero or more.
    ///   - launch: launches one; it gets its number, from 0.
    /// - Throws: what `launch` throws; the workers that were launched before are shut down then.
    public init(count: Int, launching launch: (Int) throws -> PortWorker) throws {
        var launched: [PortWorker] = []
        do {
            for number in 0..<count { launched.append(try launch(number)) }
        } catch {
            _ = try? PortWorker.shutDown(launched, asking: nil, within: Self.abandonLimit)
            throw error
        }
        workers = launched
    }

    /// Waits until all workers have checked in, at once and within one limit.
    ///
    /// - Parameter limit: the longest time for all of them together.
    /// - Returns: the rights to their ports, in the order of ``workers``.
    /// - Throws: as `PortWorker.checkIn(within:)`, for the worker that the error names. All workers are shut down then,
    ///   each step of which takes at most ``abandonLimit``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func checkIn(within limit: Duration) throws(PortError) -> [SendRight] {
        try checkIn(until: .after(limit), WorkerWait())
    }

    /// Suspends the task until all workers have checked in, at once and within one limit.
    ///
    /// It starts a thread that waits meanwhile.
    ///
    /// - Parameter limit: the longest time for all of them together.
    /// - Returns: the rights to their ports, in the order of ``workers``.
    /// - Throws: what the blocking form throws; `CancellationError` when the task was cancelled: the workers keep
    ///   running.
    nonisolated(nonsending) public func checkIn(within limit: Duration) async throws -> [SendRight] {
        try await waitOffThePool { [self] wait in try checkIn(until: .after(limit), wait) }
    }

    /// Ends all workers at once, as `PortWorker.shutDown(asking:within:)` ends one.
    ///
    /// - Parameters:
    ///   - message: what makes a worker leave; nil to stop them at once.
    ///   - limit: how long each of the two or three steps may take, for all of them together.
    /// - Returns: how they ended, in the order of ``workers``.
    /// - Throws: ``PortError/Code/workerStillRunning`` for the first that did not end.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public func shutDown(asking message: MachMessage? = nil, within limit: Duration = .seconds(5)) throws(PortError)
        -> [WorkerExit]
    {
        try PortWorker.shutDown(workers, asking: message, within: limit)
    }

    /// Ends all workers at once, and suspends the task until they are gone.
    ///
    /// It starts a thread that does so meanwhile. Cancelling the task changes nothing: the call waits for an end that
    /// has begun.
    ///
    /// - Parameters:
    ///   - message: what makes a worker leave; nil to stop them at once.
    ///   - limit: how long each of the two or three steps may take, for all of them together.
    /// - Returns: how they ended, in the order of ``workers``.
    /// - Throws: ``PortError``, as the blocking form; `systemCallFailed` when the system gives no thread: nothing was
    ///   done then.
    @discardableResult
    nonisolated(nonsending) public func shutDown(
        asking message: MachMessage? = nil, within limit: Duration = .seconds(5)
    )
        async throws -> [WorkerExit]
    {
        try await PortWorker.shutDownOffThePool(workers, asking: message, within: limit)
    }

    private func checkIn(until deadline: MonotonicInstant, _ wait: WorkerWait) throws(PortError) -> [SendRight] {
        do throws(PortError) {
            return try PortWorker.checkIn(workers, until: deadline, wait)
        } catch {
            if !wait.isCancelled {
                _ = try? PortWorker.shutDown(workers, asking: nil, within: Self.abandonLimit)
            }
            throw error
        }
    }
}
