// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Calls a closure on the loop's thread and blocks until it has returned.
    ///
    /// On the loop's own thread it is called at once, whatever the modes and the limit are. Elsewhere it is posted,
    /// after everything that the calling thread has posted to this loop before, and called when the loop runs in one of
    /// the modes. The loop is woken. Two threads that wait for each other in this way wait until a limit passes.
    ///
    /// Whatever the body holds is released before the call returns; or, when the limit passes during the body, after
    /// the body.
    ///
    /// - Parameters:
    ///   - modes: in which modes, at least one or the call traps; ``RunLoopMode/common`` means the modes that are
    ///     common when the loop calls its blocks.
    ///   - limit: the longest time to wait for the body to return. Zero or less never waits: on another thread nothing
    ///     is posted.
    ///   - body: what to call, on the loop's thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the loop's
    ///   thread has ended, or ends before it has begun the body; ``RunLoopError/Code/timedOut`` when the limit has
    ///   passed: a body that has not begun is then never called, one that has begun continues and its result is
    ///   dropped.
    /// - Important: Thread safety: any thread.
    @available(*, noasync, message: "It blocks the thread. Leave `within` out to suspend the task instead.")
    public func performAndWait<Success: Sendable>(
        in modes: [RunLoopMode] = [.default], within limit: Duration, _ body: @escaping @Sendable () throws -> Success
    ) throws -> Success {
        if isCurrent { return try body() }
        Self.checkRequestModes(modes)
        if limit <= .zero { throw RunLoopError(hasEnded ? .threadEnded : .timedOut) }
        let deadline = MonotonicInstant.after(limit)
        let outcome = PerformOutcome<Success>()
        let request = PerformRequest(on: self, outcome: outcome, body)
        let isOver = ThreadEvent()
        outcome.whenOver { _ in isOver.set() }
        post(request, in: modes)
        if !isOver.wait(until: deadline) { request.withdraw() }
        guard let result = outcome.result else { throw RunLoopError(.timedOut) }
        return try result.get()
    }

    /// Calls a closure on the loop's thread and suspends the task until it has returned.
    ///
    /// On the loop's own thread, as in a task of an actor that runs on this loop, it is called at once, whatever the
    /// modes are. Elsewhere it is posted, and called when the loop runs in one of the modes. The loop is woken.
    ///
    /// There is no limit. Cancelling the task withdraws a body that has not begun; the call waits for one that has
    /// begun.
    ///
    /// - Parameters:
    ///   - modes: in which modes, at least one or the call traps; ``RunLoopMode/common`` means the modes that are
    ///     common when the loop calls its blocks.
    ///   - body: what to call, on the loop's thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; `CancellationError` when the task was cancelled before the body began, which is
    ///   then never called; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the loop's thread has
    ///   ended, or ends before it has begun the body.
    /// - Important: Thread safety: any thread.
    nonisolated(nonsending) public func performAndWait<Success: Sendable>(
        in modes: [RunLoopMode] = [.default], _ body: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try Task.checkCancellation()
        if isCurrent { return try body() }
        Self.checkRequestModes(modes)
        let outcome = PerformOutcome<Success>()
        let request = PerformRequest(on: self, outcome: outcome, body)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                outcome.whenOver { continuation.resume(with: $0) }
                post(request, in: modes)
                // Cancelled before it was posted: the withdrawal found nothing to remove from the loop.
                if Task.isCancelled, !request.isPending { forget([request.id], blocks: [request.id]) }
            }
        } onCancel: {
            if request.withdraw() { outcome.finish(CancellationError()) }
        }
    }
}
