// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A requested notice, which the requester may withdraw before it is delivered.
///
/// You need not keep it: the notice is delivered anyway. What the handler holds is released after the call, when the
/// notice is withdrawn, or when the thread of its loop ends.
///
/// - Important: Thread safety: any thread.
public final class NoticeRequest: Sendable {
    private struct State: Sendable {
        var wasCalled = false
        var isCancelled = false
        /// Removes the notice from where it is pending.
        var withdrawal: Withdrawal?
    }

    private let state = Mutex(State())
    private let forkCount = sysForkCount()  // immutable

    /// Withdraws the notice, unless its loop has begun to call the handler.
    ///
    /// What the notice has retained until now, the handler, a descriptor or a connection, is released before this
    /// returns, or by the loop if it is about to call the handler.
    ///
    /// - Returns: true when the handler was not called and never will be, also when the notice was withdrawn before;
    ///   false when it was called or is being called now, as from inside itself.
    @discardableResult
    public func cancel() -> Bool {
        // In a forked child the notice belongs to the parent, and is never delivered.
        if sysForkCount() != forkCount { return true }
        let (wasCalled, withdrawal) = state.withLock { state in
            if !state.wasCalled { state.isCancelled = true }
            return (state.wasCalled, state.withdrawal.take())
        }
        withdrawal?()
        return !wasCalled
    }

    /// The notice is pending now.
    ///
    /// - Parameter withdrawal: removes it; does nothing once it was delivered. It does not retain what it removes.
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

/// Removes a notice from where it is pending.
package typealias Withdrawal = @Sendable () -> Void
