// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension ResidentThread {
    /// Calls a closure on the thread, after all that was posted to it before, and blocks until it has returned.
    ///
    /// On the thread itself it is called at once. See ``ThreadRunLoop/performAndWait(in:within:_:)``.
    ///
    /// - Parameters:
    ///   - limit: the longest time to wait for its return. Zero or less never waits: on another thread nothing is
    ///     posted.
    ///   - body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread
    ///   has ended or was told to stop before, and the body is then never called; ``RunLoopError/Code/timedOut`` when
    ///   the limit has passed: a body that has not begun is never called then, one that has begun goes on.
    @available(*, noasync, message: "It blocks the thread. Leave `within` out to suspend the task instead.")
    public func performAndWait<Success: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () throws -> Success
    ) throws -> Success {
        try checkAccepts()
        return try loop.performAndWait(in: [.common], within: limit, body)
    }

    /// Calls a closure on the thread, after all that was posted to it before, and suspends the task until it has
    /// returned.
    ///
    /// On the thread itself, as in a task of an actor that runs on its loop, it is called at once. Cancelling the task
    /// withdraws a body that has not begun; one that has begun is waited for.
    ///
    /// - Parameter body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; `CancellationError` when the task was cancelled before the body began;
    ///   ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread has ended or was told to stop
    ///   before. In the last two cases the body is never called.
    nonisolated(nonsending) public func performAndWait<Success: Sendable>(
        _ body: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try checkAccepts()
        return try await loop.performAndWait(in: [.common], body)
    }

    /// Refuses what comes after a stop. What comes at the same moment may be executed or refused: the loop drops what
    /// it has not begun when it ends, and says so to whoever waits.
    private func checkAccepts() throws(RunLoopError) {
        if !isCurrent, state.withLock({ $0.isStopping }) { throw RunLoopError(.threadEnded) }
    }
}
