// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The state behind a command source's routines. It does not retain the source, except while the source is in a loop, so
/// that the source then lives without another reference:
///
/// ```
/// loop ─► RunLoopSource ─► CommandBuffer ─► CommandSource ─► RunLoopSource     while in a loop
///         RunLoopSource ─► CommandBuffer ◄─ CommandSource ─► RunLoopSource     else
/// ```
///
/// A notice for a client is appended to the client's list under the lock, in the order of events. A block on the
/// client's loop dequeues it from there. So a client is notified in order although the blocks are posted without the
/// lock. A client that was not yet notified of a source when that source leaves is not notified of it at all. So the
/// list cannot grow while the client's loop does not run.
final class CommandBuffer<Command: Sendable>: Sendable {
    private let limit: Int
    private let handler: CommandSource<Command>.Handler
    let state = Mutex(CommandState<Command>())

    init(limit: Int, handler: @escaping CommandSource<Command>.Handler) {
        self.limit = limit
        self.handler = handler
    }

    func add(_ command: Command) -> CommandAcceptance {
        state.withLock { $0.add(command, limit: limit) }
    }

    /// Passes all waiting commands to the handler.
    func drain() {
        let (commands, source) = state.withLock { ($0.dequeueCommands(), $0.source) }
        if let source, !commands.isEmpty { handler(source, commands) }
    }

    /// The source has entered a mode of a loop. Clients are notified when it was the first.
    func didEnter(_ loop: ThreadRunLoop) {
        for client in state.withLock({ $0.enter(loop) }) { post(client) }
    }

    /// The source has left a mode of a loop. When it was the last, clients are notified, and the call waits for them.
    func didLeave(_ loop: ThreadRunLoop) {
        let (notified, source) = state.withLock { $0.leave(loop) }
        let start = MonotonicInstant.now
        for (client, _) in notified where !client.loop.isCurrent { post(client) }
        for (client, _) in notified where client.loop.isCurrent { client.deliver() }
        for (client, isDone) in notified { isDone.wait(until: start.advanced(by: client.removalLimit)) }
        _ = source  // released here, without the lock
    }

    /// Ends the source: it accepts no more commands and clients, and leaves its loops through `leave`.
    func invalidate(_ leave: () -> Void) {
        guard let commands = state.withLock({ $0.beginInvalidation() }) else { return }
        leave()
        let clients = state.withLock { $0.endInvalidation() }
        _ = (commands, clients)  // released here, without the lock
    }

    func add(_ client: CommandSource<Command>.Client) {
        if state.withLock({ $0.add(client) }) { post(client) }
    }

    private func post(_ client: CommandSource<Command>.Client) {
        if state.withLock({ $0.beginPost(to: client.id) }) { client.post() }
    }

    /// Removes a client, and ends all waits for it.
    func remove(_ client: ItemID) {
        let entry = state.withLock { $0.remove(client) }
        for case .removed(_, let isDone) in entry?.notices ?? [] { isDone.set() }
    }

    func dequeueNotice(for client: ItemID) -> CommandState<Command>.Notice? {
        let (notice, gone) = state.withLock { $0.dequeueNotice(for: client) }
        _ = gone  // released here, without the lock
        return notice
    }
}
