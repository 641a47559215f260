// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What a command source knows: its commands, its clients with what they are to be told, and the loops that it is in.
struct CommandState<Command: Sendable>: Sendable {
    typealias Source = CommandSource<Command>

    /// What a client is to be told.
    struct Notice: Sendable {
        enum Event: Sendable {
            case registered, removed
        }

        let event: Event
        let context: Source.Context
        /// Set when the client has been told, or will not be; nil when nobody waits for that.
        let isDone: ThreadEvent?
    }

    struct ClientEntry: Sendable {
        let client: Source.Client
        /// In the order of events; at most two for each loop.
        var notices: [Notice] = []
        /// A block that looks at the notices is on its way to the client's loop.
        var isPosted = false
    }

    /// A client that has something to be told.
    typealias Told = (client: Source.Client, isDone: ThreadEvent?)

    private(set) var commands: [Command] = []
    private(set) var isValid = true
    /// In the order in which they came. After the end, only those that have, or will have, something to be told.
    private(set) var clients: [ClientEntry] = []
    /// In how many modes of each loop the source is. Schedule and cancel routines that cross each other may make it
    /// less than zero for a moment.
    private var modeCounts: [ThreadRunLoop: Int] = [:]
    weak var source: Source?
    /// The same, while it is in a loop.
    private var keptSource: Source?

    mutating func add(_ command: Command, limit: Int) -> CommandAcceptance {
        if !isValid { return .sourceInvalid }
        if commands.count >= limit { return .bufferFull }
        commands.append(command)
        return .accepted
    }

    mutating func takeCommands() -> [Command] {
        defer { commands = [] }
        return commands
    }

    /// Whether the source is in a loop, as far as its routines have been called.
    private var isInLoop: Bool { modeCounts.values.contains { $0 > 0 } }

    /// The source has entered a mode of a loop.
    ///
    /// - Returns: the clients that have to be told.
    mutating func enter(_ loop: ThreadRunLoop) -> [Told] {
        guard countModes(of: loop, 1) == 1, let source else { return [] }
        keptSource = source
        return tell(.registered, source, loop)
    }

    /// The source has left a mode of a loop.
    ///
    /// - Returns: the clients that have to be told, and the source, for the caller to release. A client that has not
    ///   been told of the registration is told nothing.
    mutating func leave(_ loop: ThreadRunLoop) -> ([Told], Source?) {
        guard countModes(of: loop, -1) == 0, let source else { return ([], nil) }
        let told = tell(.removed, source, loop)
        if !isInLoop { keptSource = nil }
        return (told, source)
    }

    private mutating func countModes(of loop: ThreadRunLoop, _ difference: Int) -> Int {
        let count = (modeCounts[loop] ?? 0) + difference
        modeCounts[loop] = count == 0 ? nil : count
        return count
    }

    /// Puts a notice into the clients' lists, and takes a registration out whose removal comes before it was told.
    private mutating func tell(_ event: Notice.Event, _ source: Source, _ loop: ThreadRunLoop) -> [Told] {
        let context = Source.Context(source: source, loop: loop)
        return clients.indices.compactMap { index in
            if event == .removed,
                let untold = clients[index].notices.lastIndex(where: {
                    $0.event == .registered && $0.context == context
                })
            {
                clients[index].notices.remove(at: untold)
                return nil
            }
            let isDone = event == .removed ? ThreadEvent() : nil
            clients[index].notices.append(Notice(event: event, context: context, isDone: isDone))
            return (clients[index].client, isDone)
        }
    }

    /// Says that a block is on its way to a client's loop.
    ///
    /// - Returns: false when one is already, or when the client is gone.
    mutating func beginPost(to client: ItemID) -> Bool {
        guard let index = clients.firstIndex(where: { $0.client.id == client }), !clients[index].isPosted else {
            return false
        }
        clients[index].isPosted = true
        return true
    }

    /// Says that the block looks at the notices now: for later ones another has to be posted.
    mutating func endPost(to client: ItemID) {
        guard let index = clients.firstIndex(where: { $0.client.id == client }) else { return }
        clients[index].isPosted = false
    }

    /// Adds a client.
    ///
    /// - Returns: whether it has to be told something.
    mutating func add(_ client: Source.Client) -> Bool {
        guard isValid else { return false }
        var entry = ClientEntry(client: client)
        if let source {
            entry.notices = modeCounts.filter { $0.value > 0 }.keys.map { loop in
                Notice(event: .registered, context: Source.Context(source: source, loop: loop), isDone: nil)
            }
        }
        clients.append(entry)
        return !entry.notices.isEmpty
    }

    /// Takes a client out.
    ///
    /// - Returns: the client, and what it has not been told.
    mutating func remove(_ client: ItemID) -> ClientEntry? {
        clients.firstIndex { $0.client.id == client }.map { clients.remove(at: $0) }
    }

    /// Takes out what a client is to be told next.
    ///
    /// - Returns: that, or else the client when it is needed no more, for the caller to release.
    mutating func takeNotice(for client: ItemID) -> (notice: Notice?, gone: ClientEntry?) {
        guard let index = clients.firstIndex(where: { $0.client.id == client }) else { return (nil, nil) }
        if !clients[index].notices.isEmpty { return (clients[index].notices.removeFirst(), nil) }
        return (nil, isValid || isInLoop ? nil : clients.remove(at: index))
    }

    /// Takes no more commands and clients.
    ///
    /// - Returns: the commands that wait, for the caller to release; nil when the source was invalid.
    mutating func beginInvalidation() -> [Command]? {
        guard isValid else { return nil }
        isValid = false
        return takeCommands()
    }

    /// Lets the clients go, except those that are still to be told something. A loop whose thread ends at the same time
    /// may not have called the cancel routine yet: then the clients go when they have been told of that.
    ///
    /// - Returns: the clients, for the caller to release.
    mutating func endInvalidation() -> [Source.Client] {
        if isInLoop { return [] }
        defer { clients.removeAll { $0.notices.isEmpty } }
        return clients.map(\.client)
    }
}
