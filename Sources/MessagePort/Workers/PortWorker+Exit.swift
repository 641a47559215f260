// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

extension PortWorker {
    /// Blocks until the worker has ended: the thread is gone, or the process has been waited for.
    ///
    /// Runs no loop. Several threads may wait. Traps on the worker's own thread.
    ///
    /// - Parameter limit: the longest time; zero or less only checks.
    /// - Returns: how the worker ended; nil when it still runs.
    @available(*, noasync, message: "It blocks the thread. Use `exited()` to suspend the task instead.")
    public func waitForExit(within limit: Duration) -> WorkerExit? {
        waitForExit(until: limit <= .zero ? .distantPast : .after(limit))
    }

    func waitForExit(until deadline: MonotonicInstant) -> WorkerExit? {
        if record.isInherited { return nil }
        if let thread {
            let limit: Duration? = deadline == .distantFuture ? nil : MonotonicInstant.now.duration(to: deadline)
            return thread.join(within: limit) ? record.exit : nil
        }
        if let process = record.process, record.exit == nil {
            _ = try? sysPoll(process.rawValue, .readable, until: deadline)
        }
        return exit
    }

    /// Suspends the task until the worker has ended.
    ///
    /// It starts a thread that waits meanwhile.
    ///
    /// - Returns: how the worker ended.
    /// - Throws: `CancellationError` when the task was cancelled: the worker keeps running; ``PortError`` when the
    ///   worker cannot be watched; ``PortError/Code/forkedProcess``.
    nonisolated(nonsending) public func exited() async throws -> WorkerExit {
        try record.checkProcess()
        return try await waitOffThePool { [self] wait in
            try wait.wait(for: [self], until: .distantFuture, while: { record.exit == nil })
            guard let exit = record.exit else { throw CancellationError() }
            _ = thread?.join()
            return exit
        }
    }

    /// Asks for one notice, on a run loop, when the worker has ended.
    ///
    /// The end of a process is noticed while a loop with such a notice runs, or when a call waits or asks for it. A
    /// notice does not keep a run of the loop going. A loop that ends drops its notices.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on the loop's thread; soon when the worker has ended already.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``,
    ///   ``PortError/Code/forkedProcess``: nothing is watched then.
    public func notifyWhenExited(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (WorkerExit) -> Void
    ) throws(PortError) {
        try record.watch(ExitWatcher(loop: loop, mode: mode, handler: handler))
    }

    /// Asks for one notice, on the current thread's run loop, when the worker has ended. See
    /// ``notifyWhenExited(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread; soon when the worker has ended already.
    /// - Throws: as ``notifyWhenExited(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenExited(on:)`.")
    public func notifyWhenExited(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (WorkerExit) -> Void
    ) throws(PortError) {
        try notifyWhenExited(on: .current, in: mode, handler)
    }
}
