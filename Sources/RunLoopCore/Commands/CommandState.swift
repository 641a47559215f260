// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A command source's state: its commands, its clients with their pending notices, and the loops that it is in.
struct CommandState<Command: Sendable>: Sendable {
    typealias Source = CommandSource<Command>

    enum Notice: Sendable {
        case registered(Source.Context)
        /// Sets the event when the notice was delivered, or never will be: a thread waits for that.
        case removed(Source.Context, isDone: ThreadEvent)
    }

    struct ClientEntry: Sendable {
        let client: Source.Client
        /// In the order of events; at most two for each loop.
        var notices: [Notice] = []
        /// A block that reads the notices is on its way to the client's loop.
        var isPosted = false

        /// Appends a notice of a removal, or deletes that of the registration when it was not delivered yet.
        ///
        /// - Returns: the client, when it must be notified.
        mutating func enqueueRemoval(of context: Source.Context) -> NotifiedClient? {
            let undelivered = notices.lastIndex { if case .registered(context) = $0 { true } else { false } }
            if let undelivered {
                notices.remove(at: undelivered)
                return nil
            }
            let isDone = ThreadEvent()
            notices.append(.removed(context, isDone: isDone))
            return (client, isDone)
        }
    }

    typealias NotifiedClient = (client: Source.Client, isDone: ThreadEvent)

    private(set) var commands: [Command] = []
    private(set) var isValid = true
    /// In the order in which they were added. After the end, only those that have, or will have, a notice.
    private(set) var clients: [ClientEntry] = []
    /// How many modes of each loop the source is in. Schedule and cancel routines that overtake each other may make it
    /// negative for a moment.
    private var modeCounts: [ThreadRunLoop: Int] = [:]
    weak var source: Source?
    /// The same, retained while it is in a loop.
    private var retainedSource: Source?

    mutating func add(_ command: Command, limit: Int) -> CommandAcceptance {
        if !isValid { return .sourceInvalid }
        if commands.count >= limit { return .bufferFull }
        commands.append(command)
        return .accepted
    }

    mutating func dequeueCommands() -> [Command] {
        defer { commands = [] }
        return commands
    }

    /// Whether the source is in a loop, as far as its routines have been called.
    private var isInLoop: Bool { modeCounts.values.contains { $0 > 0 } }

    /// The source has entered a mode of a loop.
    ///
    /// - Returns: the clients to notify.
    mutating func enter(_ loop: ThreadRunLoop) -> [Source.Client] {
        guard countModes(of: loop, 1) == 1, let source else { return [] }
        retainedSource = source
        for index in clients.indices {
            clients[index].notices.append(.registered(Source.Context(source: source, loop: loop)))
        }
        return clients.map(\.client)
    }

    /// The source has left a mode of a loop.
    ///
    /// - Returns: the clients to notify, and the source, for the caller to release. A client that was not yet notified
    ///   of the registration is not notified.
    mutating func leave(_ loop: ThreadRunLoop) -> ([NotifiedClient], Source?) {
        guard countModes(of: loop, -1) == 0, let source else { return ([], nil) }
        let context = Source.Context(source: source, loop: loop)
        let notified = clients.indices.compactMap { clients[$0].enqueueRemoval(of: context) }
        if !isInLoop { retainedSource = nil }
        return (notified, source)
    }

    private mutating func countModes(of loop: ThreadRunLoop, _ difference: Int) -> Int {
        let count = (modeCounts[loop] ?? 0) + difference
        modeCounts[loop] = count == 0 ? nil : count
        return count
    }

    private func index(of client: ItemID) -> Int? {
        clients.firstIndex { $0.client.id == client }
    }

    /// Records that a block is on its way to a client's loop.
    ///
    /// - Returns: false when one already is, or when the client is gone.
    mutating func beginPost(to client: ItemID) -> Bool {
        guard let index = index(of: client), !clients[index].isPosted else { return false }
        clients[index].isPosted = true
        return true
    }

    /// Records that the block reads the notices now: later ones need another block.
    mutating func endPost(to client: ItemID) {
        if let index = index(of: client) { clients[index].isPosted = false }
    }

    /// - Returns: whether the client has a notice.
    mutating func add(_ client: Source.Client) -> Bool {
        guard isValid else { return false }
        var entry = ClientEntry(client: client)
        if let source {
            entry.notices = modeCounts.filter { $0.value > 0 }.keys.map { loop in
                .registered(Source.Context(source: source, loop: loop))
            }
        }
        clients.append(entry)
        return !entry.notices.isEmpty
    }

    /// - Returns: the client, with its undelivered notices.
    mutating func remove(_ client: ItemID) -> ClientEntry? {
        index(of: client).map { clients.remove(at: $0) }
    }

    /// - Returns: the client's next notice, or else the client when it is no longer needed, for the caller to release.
    mutating func dequeueNotice(for client: ItemID) -> (notice: Notice?, gone: ClientEntry?) {
        guard let index = index(of: client) else { return (nil, nil) }
        if !clients[index].notices.isEmpty { return (clients[index].notices.removeFirst(), nil) }
        return (nil, isValid || isInLoop ? nil : clients.remove(at: index))
    }

    /// Accepts no more commands and clients.
    ///
    /// - Returns: the waiting commands, for the caller to release; nil when the source was already invalid.
    mutating func beginInvalidation() -> [Command]? {
        guard isValid else { return nil }
        isValid = false
        return dequeueCommands()
    }

    /// Releases the clients, except those that have pending notices. A loop whose thread ends at the same time may not
    /// have called the cancel routine yet: then the clients are released when they have been notified of that.
    ///
    /// - Returns: the clients, for the caller to release.
    mutating func endInvalidation() -> [Source.Client] {
        if isInLoop { return [] }
        defer { clients.removeAll { $0.notices.isEmpty } }
        return clients.map(\.client)
    }
}

/// The state behind a command source's routines. It does not retain the source, except while the source is in a loop, so
/// that the source then lives without another reference:
///
///     loop ─► RunLoopSource ─► CommandBuffer ─► CommandSource ─► RunLoopSource     while in a loop
///             RunLoopSource ─► CommandBuffer ◄─ CommandSource ─► RunLoopSource     else
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
