// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A loop's state, under the loop's one lock.
///
/// It knows whether anybody has been at it since its loop's thread found that nothing but the source that it performs is to
/// be done. As long as nobody has, that holds: between two messages of a stream the lock is not taken.
struct GuardedLoopState: ~Copyable, Sendable {
    private let state = Mutex(RunLoopState())
    /// Changed under the lock.
    private let isSettled = Atomic<Bool>(false)

    /// Looks at the state, or changes it.
    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending RunLoopState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock { (state) throws(Failure) -> sending Result in
            isSettled.store(false, ordering: .relaxed)
            return try body(&state)
        }
    }

    /// Whether nobody has been at the state since `settle` found it so. Who changes it, and then does what this thread learns
    /// of, is seen.
    var remainsSettled: Bool { isSettled.load(ordering: .relaxed) }

    /// Asks whether the state is such that it need not be looked at again until somebody has been at it.
    ///
    /// - Parameter body: answers that, and something besides.
    /// - Returns: the other answer.
    borrowing func settle(_ body: (inout sending RunLoopState) -> (isSettled: Bool, Bool)) -> Bool {
        state.withLock { state in
            let (isNow, result) = body(&state)
            isSettled.store(isNow, ordering: .relaxed)
            return result
        }
    }
}
