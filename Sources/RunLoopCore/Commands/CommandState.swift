// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

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
