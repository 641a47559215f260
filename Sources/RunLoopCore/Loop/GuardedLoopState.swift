// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A loop's state, under the loop's one lock.
///
/// The loop's thread leaves a mark on it when it has found something that holds until somebody changes it. Whoever is at
/// the state after that, takes the mark away. As long as it is there, the thread need not take the lock to look again.
struct GuardedLoopState: ~Copyable, Sendable {
    /// What the loop's thread has found, for what it does next.
    enum Finding: UInt8, AtomicRepresentable {
        case nothing
        /// Nothing but the source that it performs is to be done.
        case onlySource
        /// The source that it asks may be performed at once, if it is ready.
        case mayPerform
        /// The next turn would find nothing in its first steps.
        case quiet
    }

    private let state = Mutex(RunLoopState())
    /// Changed under the lock.
    private let finding = Atomic<Finding>(.nothing)

    /// Looks at the state, or changes it.
    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending RunLoopState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock { (state) throws(Failure) -> sending Result in
            finding.store(.nothing, ordering: .relaxed)
            return try body(&state)
        }
    }

    /// Whether nobody has been at the state since `find` has left this mark. Who changes the state, and then does what
    /// this thread learns of, is seen.
    ///
    /// A mark names no run, mode or source: it is of the innermost run, as each that begins or ends takes it away, and each
    /// `holds` follows a `find` of its own run.
    func holds(_ found: Finding) -> Bool { finding.load(ordering: .acquiring) == found }

    /// Looks at the state, or changes it, and leaves a mark.
    ///
    /// - Parameters:
    ///   - found: the mark.
    ///   - body: says whether it is to be left, and something besides.
    /// - Returns: what else it says.
    borrowing func find<Result: Sendable>(
        _ found: Finding, _ body: (inout sending RunLoopState) -> (holds: Bool, Result)
    ) -> Result {
        state.withLock { state in
            let (holds, result) = body(&state)
            finding.store(holds ? found : .nothing, ordering: .relaxed)
            return result
        }
    }
}
