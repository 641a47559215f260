// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    func list() throws {
        let server = try nameServer()
        if has("--watch") { return try watchList(server) }
        let (lines, json) = try content(server)
        if has("--json") { return try Console.write(json) }
        guard lines.count > 1 || has("--names") else {
            if Console.isTerminal() { Console.note("No name is held.") }
            return
        }
        try Console.write(lines)
    }

    func info() throws {
        let server = try nameServer()
        guard let row = try rows(server).first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
            throw PortError(.nameUnknown, subject: .name(name))
        }
        let table = Table(columns: [.init(title: ""), .init(title: "")], rows: row.facts.map { [$0.0, $0.1] })
        if has("--json") { return try Console.write(row.json) }
        try Console.write(table.lines().dropFirst().joinedLines())
    }

    /// All names: those of live ports, and those whose owners are started on demand.
    private func rows(_ server: PortNameServer) throws -> [NameListing] {
        let running = try server.listAnswers(within: duration("--timeout")).compactMap { registration, answer in
            isShown(registration) ? NameListing(registration, answer) : nil
        }
        let waiting = try server.listDeclared().map { NameListing($0, nil) }
        return (running + waiting).sorted { $0.name < $1.name }
    }

    /// Trace services are shown only on request.
    private func isShown(_ registration: PortNameServer.Registration) -> Bool {
        command != .list || has("--all") || !registration.isTraceService
    }

    /// What to show, as lines and as JSON. For the names alone no owner is asked.
    private func content(_ server: PortNameServer) throws -> (lines: [Console.Line], json: JSONValue) {
        if has("--names") {
            let names = try (server.list() + server.listDeclared()).filter(isShown).map(\.name).sorted()
            return (names.map { ($0.shown, .plain) }, .array(names.map { .text($0) }))
        }
        let rows = try rows(server)
        let table = Table(columns: NameListing.columns, rows: rows.map(\.cells))
        let lines = has("--json") ? [] : table.lines(width: Console.width())
        return (Array(zip(lines, [Style.title] + rows.map(\.style))), .array(rows.map(\.json)))
    }

    /// Shows the list repeatedly, until a signal comes: on a terminal in place.
    private func watchList(_ server: PortNameServer) throws {
        Interrupt.endsProgram(writing: Console.isTerminal() ? Screen.farewell : "")
        let screen = Screen()
        defer { screen.end() }
        var left = count("--count") ?? .max
        while true {
            do {
                let (lines, json) = try content(server)
                if has("--json") { try Console.write(json) } else { try screen.show(lines) }
            } catch let error as PortError {
                // What is shown stays until there are descriptors or memory again.
                guard error.isShortage else { throw error }
            }
            left -= 1
            if left == 0 { return }
            ThreadEvent().wait(until: .after(duration("--interval")))
        }
    }
}

extension PortNameServer.Registration {
    /// Whether it is the service that `portctl trace` asks, and not a name that only resembles it.
    var isTraceService: Bool { name == TraceService.name(of: owner) }
}
