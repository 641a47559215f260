// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A loop's state, under the loop's one lock.
///
/// The loop's thread leaves a mark when it has found something that holds until the state changes. Every later access
/// to the state removes the mark. As long as the mark is there, the thread need not take the lock to check again.
struct LockedLoopState: ~Copyable, Sendable {
    /// What the loop's thread has found, for its next step.
    enum CachedVerdict: UInt8, AtomicRepresentable {
        case nothing
        /// There is nothing to do but the source that it performs.
        case onlySource
        /// The source that it checks may be performed at once, if it is ready.
        case mayPerform
        /// The next pass would find nothing in its first steps.
        case idle
    }

    /// Changed under the lock. Before it, where it shares a line of memory with what other threads change.
    private let verdict = Atomic<CachedVerdict>(.nothing)
    private let state = Mutex(RunLoopState())

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending RunLoopState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock { (state) throws(Failure) -> sending Result in
            verdict.store(.nothing, ordering: .relaxed)
            return try body(&state)
        }
    }

    /// Whether no thread has accessed the state since `find` left this mark. When a thread changes the state, and this
    /// thread then observes something that the other did afterwards, it also sees that the mark is gone.
    ///
    /// A mark names no run, mode or source: it belongs to the innermost run, because each run that begins or ends
    /// removes it, and each `holds` follows a `find` of its own run.
    func holds(_ found: CachedVerdict) -> Bool { verdict.load(ordering: .acquiring) == found }

    /// Reads or changes the state, and leaves a mark, if the body says so.
    borrowing func find<Result: Sendable>(
        _ found: CachedVerdict, _ body: (inout sending RunLoopState) -> (holds: Bool, Result)
    ) -> Result {
        state.withLock { state in
            let (holds, result) = body(&state)
            verdict.store(holds ? found : .nothing, ordering: .relaxed)
            return result
        }
    }
}
