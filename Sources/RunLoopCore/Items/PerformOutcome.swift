// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The result of a call that another thread or a task waits for, and the waiter to notify. The waiter gets the result
/// once, so unlike the task waiter of MessagePort, which is woken to check again, it needs no loop around its wait.
final class PerformOutcome<Success: Sendable>: Sendable {
    private enum Stage: Sendable {
        case pending
        /// The call has returned; `finish` follows.
        case returned(Result<Success, any Error>)
        case over(Result<Success, any Error>)
    }

    private struct State: Sendable {
        var stage = Stage.pending
        var waiter: (@Sendable (Result<Success, any Error>) -> Void)?
    }

    private let state = Mutex(State())

    /// The result, when the call is over.
    var result: Result<Success, any Error>? {
        state.withLock { if case .over(let result) = $0.stage { result } else { nil } }
    }

    /// Stores the result of a call that has returned, for `finish`.
    func set(_ result: Result<Success, any Error>) {
        state.withLock { $0.stage = .returned(result) }
    }

    /// Passes the waiter the result that was set, or else the given error.
    func finish(_ error: @autoclosure () -> any Error) {
        let (waiter, result) = state.withLock { state in
            let result: Result<Success, any Error> =
                switch state.stage {
                case .pending: .failure(error())
                case .returned(let result), .over(let result): result
                }
            state.stage = .over(result)
            return (state.waiter.take(), result)
        }
        waiter?(result)
    }

    /// Calls the waiter once, with the result: now, or when the call is over.
    func whenOver(_ waiter: @escaping @Sendable (Result<Success, any Error>) -> Void) {
        let result: Result<Success, any Error>? = state.withLock { state in
            if case .over(let result) = state.stage { return result }
            state.waiter = waiter
            return nil
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
