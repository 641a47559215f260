// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// A requested notice: delivered once, on a run loop that the requester chose, or never when the loop's thread ends
// first. An anchor in the loop, a source that is never ready by itself, makes the loop report its end.
//
//   waiting ──notify()──▶ over        the handler is called once, as a block of the loop
//   waiting ──cancel()──▶ over        the handler is released and never called
package final class LoopNotification<Content: Sendable>: Sendable {
    package typealias Handler = @Sendable (Content) -> Void

    private struct State {
        var handler: Handler?
        /// The sources in the loop while the notice is pending: the anchor, and the one that checks whether it is due.
        var sources: [RunLoopSource] = []
    }

    /// Ends the notice with its loop.
    private struct LoopEndRoutine: SourceRoutine {
        weak let notice: LoopNotification?

        func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
            if loop.hasEnded { notice?.cancel() }
        }

        func perform() -> SourceOutcome { .nothing }
    }

    private let state: Mutex<State>
    let loop: ThreadRunLoop  // immutable
    let mode: RunLoopMode  // immutable

    /// Makes a pending notice.
    init(on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping Handler) {
        self.loop = loop
        self.mode = mode
        state = Mutex(State(handler: handler))
        let anchor = RunLoopSource(label: .portNotice, keepsModeAlive: false, routine: LoopEndRoutine(notice: self))
        state.withLock { $0.sources = [anchor] }
        loop.add(anchor, to: mode)
        if loop.hasEnded { cancel() }
    }

    deinit {
        cancel()
    }

    /// Whether it was delivered or cancelled.
    var isOver: Bool { state.withLock { $0.handler == nil } }

    /// Adds a source that checks whether the notice is due: it ends with the notice.
    func attach(_ source: RunLoopSource) {
        let isOver = state.withLock { state in
            if state.handler != nil { state.sources.append(source) }
            return state.handler == nil
        }
        if isOver { source.invalidate() }
    }

    /// Delivers it, unless it is over.
    func notify(_ content: Content, named name: String = "port notice") {
        guard let handler = end() else { return }
        loop.perform(in: [mode], name: name) { handler(content) }
    }

    /// Ends the notice without delivering it.
    ///
    /// - Returns: false when it was over before.
    @discardableResult
    func cancel() -> Bool { end() != nil }

    /// - Returns: the handler, to the one call that ends the notice.
    private func end() -> Handler? {
        let old = state.withLock { state in
            let old = state
            state = State()
            return old
        }
        for source in old.sources { source.invalidate() }
        return old.handler
    }
}

extension SourceLabel {
    static let portNotice = SourceLabel("port notice")
}

extension LoopNotification where Content == Void {
    /// Delivers it, unless it is over.
    func notify() { notify(()) }
}

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

    /// Makes a pending notice, which `watch` registers.
    ///
    /// - Throws: what `watch` throws; then nothing is pending.
    static func pending<Content>(
        on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping @Sendable (Content) -> Void,
        _ watch: (LoopNotification<Content>) throws(PortError) -> Void
    ) throws(PortError) -> NoticeRequest {
        let request = NoticeRequest()
        let notice = LoopNotification<Content>(on: loop, in: mode) { if request.begin() { handler($0) } }
        do throws(PortError) {
            try watch(notice)
        } catch {
            notice.cancel()
            throw error
        }
        request.setCancellation { [weak notice] in notice?.cancel() }
        return request
    }

    /// The notice is pending now.
    ///
    /// - Parameter cancellation: removes it; does nothing once it was delivered. It does not retain what it removes.
    func setCancellation(_ cancellation: @escaping Cancellation) {
        state.withLock { if case .pending = $0 { $0 = .pending(cancellation) } }
    }

    /// The loop is about to call the handler.
    ///
    /// - Returns: false when the notice was withdrawn.
    func begin() -> Bool {
        state.withLock { state in
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
