// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension ResidentThread {
    /// Calls a closure on the thread, after everything that was posted to it before, and blocks until it has returned.
    ///
    /// On the thread itself it is called at once. See ``ThreadRunLoop/performAndWait(in:within:_:)``.
    ///
    /// - Parameters:
    ///   - limit: the longest time to wait for the body to return. Zero or less never waits: on another thread nothing
    ///     is posted.
    ///   - body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread
    ///   has ended or was stopped before, and the body is then never called; ``RunLoopError/Code/timedOut`` when the
    ///   limit has passed: a body that has not begun is then never called, one that has begun continues.
    @available(*, noasync, message: "It blocks the thread. Leave `within` out to suspend the task instead.")
    public func performAndWait<Success: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () throws -> Success
    ) throws -> Success {
        try checkAccepts()
        return try loop.performAndWait(in: [.common], within: limit, body)
    }

    /// Calls a closure on the thread, after everything that was posted to it before, and suspends the task until it has
    /// returned.
    ///
    /// On the thread itself, as in a task of an actor that runs on its loop, it is called at once. Cancelling the task
    /// withdraws a body that has not begun; the call waits for one that has begun.
    ///
    /// - Parameter body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; `CancellationError` when the task was cancelled before the body began;
    ///   ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread has ended or was stopped
    ///   before. In the last two cases the body is never called.
    nonisolated(nonsending) public func performAndWait<Success: Sendable>(
        _ body: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try checkAccepts()
        return try await loop.performAndWait(in: [.common], body)
    }

    /// Refuses calls after a stop. A call at the same moment may be executed or refused: when the loop ends, it drops
    /// what it has not begun, and reports that to the waiting caller.
    private func checkAccepts() throws(RunLoopError) {
        if !isCurrent, state.withLock({ $0.isStopping }) { throw RunLoopError(.threadEnded) }
    }
}
