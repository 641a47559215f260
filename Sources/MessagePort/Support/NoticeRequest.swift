// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A notice that somebody has asked for, and may withdraw before it is told.
///
/// It need not be kept: the notice is told all the same. What the handler holds is released when it was called, when
/// the notice is withdrawn, or when the thread of its loop ends.
///
/// - Important: Thread safety: any thread.
public final class NoticeRequest: Sendable {
    private struct State: Sendable {
        var wasCalled = false
        var isCancelled = false
        /// Takes the notice away from where it waits.
        var withdrawal: Withdrawal?
    }

    private let state = Mutex(State())
    private let forkCount = sysForkCount()  // immutable

    /// Withdraws the notice, unless its loop has begun to call the handler.
    ///
    /// What the notice has kept until now, the handler, a descriptor or a connection, is released before this returns,
    /// or by the loop when that is about to call the handler.
    ///
    /// - Returns: true when the handler was not called and never will be, also when the notice was withdrawn before;
    ///   false when it was called or is being called now, as inside of itself.
    @discardableResult
    public func cancel() -> Bool {
        // In a forked child it is its parent's, and is never told.
        if sysForkCount() != forkCount { return true }
        let (wasCalled, withdrawal) = state.withLock { state in
            if !state.wasCalled { state.isCancelled = true }
            return (state.wasCalled, state.withdrawal.take())
        }
        withdrawal?()
        return !wasCalled
    }

    /// The notice waits now.
    ///
    /// - Parameter withdrawal: takes it away; does nothing when it was told. It does not keep what waits.
    func setWithdrawal(_ withdrawal: @escaping Withdrawal) {
        state.withLock { if !$0.wasCalled { $0.withdrawal = withdrawal } }
    }

    /// The loop is about to call the handler.
    ///
    /// - Returns: false when the notice was withdrawn.
    func begin() -> Bool {
        state.withLock { state in
            state.wasCalled = !state.isCancelled
            state.withdrawal = nil
            return state.wasCalled
        }
    }
}

/// Takes a notice away from where it waits to be told.
package typealias Withdrawal = @Sendable () -> Void
