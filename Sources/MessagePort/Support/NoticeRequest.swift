// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// A requested notice, which the requester may withdraw before it is delivered.
///
/// You need not retain it: the notice is delivered anyway. What the handler retains is released after the call, when
/// the notice is withdrawn, or when the thread of its loop ends.
///
/// - Important: Thread safety: any thread.
public final class NoticeRequest: Sendable {
    private enum State: Sendable {
        /// What removes the notice from where it is pending.
        case pending(Cancellation?)
        case called
        case cancelled
    }

    private let state = Mutex(State.pending(nil))
    private let forkGuard = ForkGuard()  // immutable

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
        if forkGuard.isInherited { return true }
        let old = state.withLock { state in
            let old = state
            if case .pending = old { state = .cancelled }
            return old
        }
        switch old {
        case .pending(let cancellation): cancellation?()
        case .cancelled: break
        case .called: return false
        }
        return true
    }

    /// Makes a pending notice, which `register` registers.
    ///
    /// - Throws: what `register` throws; then nothing is pending.
    static func pending<Content>(
        on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping @Sendable (Content) -> Void,
        _ register: (LoopNotification<Content>) throws(PortError) -> Void
    ) throws(PortError) -> NoticeRequest {
        let request = NoticeRequest()
        let notice = LoopNotification<Content>(on: loop, in: mode) { if request.begin() { handler($0) } }
        do throws(PortError) {
            try register(notice)
        } catch {
            notice.cancel()
            throw error
        }
        request.setCancellation { [weak notice] in notice?.cancel() }
        return request
    }

    /// The same in a task.
    nonisolated(nonsending) static func pending<Content>(
        on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping @Sendable (Content) -> Void,
        _ register: nonisolated(nonsending) (LoopNotification<Content>) async throws(PortError) -> Void
    ) async throws(PortError) -> NoticeRequest {
        let request = NoticeRequest()
        let notice = LoopNotification<Content>(on: loop, in: mode) { if request.begin() { handler($0) } }
        do throws(PortError) {
            try await register(notice)
        } catch {
            notice.cancel()
            throw error
        }
        request.setCancellation { [weak notice] in notice?.cancel() }
        return request
    }

    /// The notice is pending now. The cancellation removes it, does nothing once it was delivered, and does not retain
    /// what it removes.
    func setCancellation(_ cancellation: @escaping Cancellation) {
        state.withLock { if case .pending = $0 { $0 = .pending(cancellation) } }
    }

    /// The loop is about to call the handler.
    ///
    /// - Returns: false when the notice was withdrawn.
    func begin() -> Bool {
        if forkGuard.isInherited { return false }
        return state.withLock { state in
            if case .cancelled = state { return false }
            state = .called
            return true
        }
    }
}

/// Removes a notice from where it is pending.
package typealias Cancellation = @Sendable () -> Void

/// Why a sender that waits for room at a port is notified. `MACH_NOTIFY_SEND_POSSIBLE`, `MACH_NOTIFY_DEAD_NAME`.
public enum SendPossibility: Hashable, Sendable {
    /// There was room at the time of the notice. Other senders may be quicker; then ask again.
    case possible
    /// The port is gone: there will never be room.
    case deadName
}
