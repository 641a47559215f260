// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

// A requested notice: delivered once, on a run loop that the requester chose, or never when the loop's thread ends
// first. An anchor in the loop, a source that is never ready by itself, makes the loop report its end.
//
//   waiting ──notify()──▶ over        the handler is called once, as a block of the loop
//   waiting ──cancel()──▶ over        the handler is released and never called
package final class LoopNotification<Content: Sendable>: Sendable {
    package typealias Handler = @Sendable (Content) -> Void

    /// Ends the notice with its loop.
    private struct LoopEndRoutine: SourceRoutine {
        weak let notice: LoopNotification?

        func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
            if loop.hasEnded { notice?.cancel() }
        }

        func perform() -> SourceOutcome { .nothing }
    }

    /// The handler, and the sources in the loop while the notice is pending: the anchor, and the one that checks whether
    /// it is due.
    private let state: Mutex<(handler: Handler?, sources: [RunLoopSource])>
    let loop: ThreadRunLoop  // immutable
    let mode: RunLoopMode  // immutable
    private let forkGuard = ForkGuard()  // immutable

    init(on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping Handler) {
        self.loop = loop
        self.mode = mode
        state = Mutex((handler, []))
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
        if forkGuard.isInherited { return nil }
        let old = state.withLock { state in
            let old = state
            state = (nil, [])
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
    func notify() { notify(()) }
}
