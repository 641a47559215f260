// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The result of a call that another thread or a task waits for, and the waiter to notify.
final class PerformOutcome<Success: Sendable>: Sendable {
    private struct State: Sendable {
        var result: Result<Success, any Error>?
        var isOver = false
        var waiter: (@Sendable (Result<Success, any Error>) -> Void)?
    }

    private let state = Mutex(State())

    /// The result, when the call is over.
    var result: Result<Success, any Error>? {
        state.withLock { $0.isOver ? $0.result : nil }
    }

    /// Stores the result of a call that has returned, for `finish`.
    func set(_ result: Result<Success, any Error>) {
        state.withLock { $0.result = result }
    }

    /// Passes the waiter the result that was set, or else the given error.
    func finish(_ error: @autoclosure () -> any Error) {
        let (waiter, result) = state.withLock { state in
            let result = state.result ?? .failure(error())
            state.result = result
            state.isOver = true
            defer { state.waiter = nil }
            return (state.waiter, result)
        }
        waiter?(result)
    }

    /// Calls the waiter once, with the result: now, or when the call is over.
    func whenOver(_ waiter: @escaping @Sendable (Result<Success, any Error>) -> Void) {
        let result = state.withLock { state in
            if !state.isOver { state.waiter = waiter }
            return state.isOver ? state.result : nil
        }
        if let result { waiter(result) }
    }
}

extension PerformRequest {
    /// Makes a request whose result another thread or a task waits for.
    convenience init<Success>(
        on loop: ThreadRunLoop, outcome: PerformOutcome<Success>, _ body: @escaping @Sendable () throws -> Success
    ) {
        self.init(
            on: loop, whenOver: { _ in outcome.finish(RunLoopError(.threadEnded)) },
            { outcome.set(Result(catching: body)) })
    }
}
