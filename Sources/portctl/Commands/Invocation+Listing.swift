// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    func list() throws {
        let server = try nameServer()
        if has("--watch") { return try watchList(server) }
        if has("--names") { return try Console.write(names(server)) }
        let rows = try rows(server)
        if rows.isEmpty, !has("--json") {
            if Console.isTerminal() { Console.note("No name is held.") }
            return
        }
        try write(Self.table(rows), json: .array(rows.map(\.json))) { $0 == 0 ? .title : rows[$0 - 1].style }
    }

    func info() throws {
        let server = try nameServer()
        guard let row = try rows(server).first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
            throw PortError(.nameUnknown, subject: .name(name))
        }
        let table = Table(columns: [.init(title: ""), .init(title: "")], rows: row.facts.map { [$0.0, $0.1] })
        if has("--json") { return try Console.write(row.json.line) }
        try Console.write(table.lines().dropFirst().joinedLines())
    }

    /// All names: those of live ports, and those whose owners are started on demand.
    private func rows(_ server: PortNameServer) throws -> [NameListing] {
        let running = try server.listAnswers(within: duration("--timeout")).compactMap { registration, answer in
            isShown(registration) ? NameListing(registration, NameListing.State(answer)) : nil
        }
        let waiting = try server.listDeclared().map { NameListing($0, .waiting) }
        return (running + waiting).sorted { $0.name < $1.name }
    }

    /// Trace services are shown only on request.
    private func isShown(_ registration: PortNameServer.Registration) -> Bool {
        command != .list || has("--all") || !registration.isTraceService
    }

    /// Only the names: no owner is asked.
    private func names(_ server: PortNameServer) throws -> [UInt8] {
        let names = try (server.list() + server.listDeclared()).filter(isShown).map(\.name).sorted()
        if has("--json") { return JSONValue.array(names.map { .text($0) }).line }
        return Array(names.map(\.shown).joinedLines().utf8)
    }

    private static func table(_ rows: [NameListing]) -> Table {
        Table(columns: NameListing.columns, rows: rows.map(\.cells))
    }

    /// Shows the list repeatedly, until a signal comes: on a terminal in place.
    private func watchList(_ server: PortNameServer) throws {
        Interrupt.endsProgram(writing: Console.isTerminal() ? Screen.farewell : "")
        let screen = Screen()
        defer { screen.end() }
        var left = count("--count") ?? .max
        while true {
            do {
                try show(server, on: screen)
            } catch let error as PortError {
                // What is shown stays until there are descriptors or memory again.
                guard error.isShortage else { throw error }
            }
            left -= 1
            if left == 0 { return }
            ThreadEvent().wait(until: .after(duration("--interval")))
        }
    }

    private func show(_ server: PortNameServer, on screen: Screen) throws {
        if has("--names") {
            let names = try names(server)
            if has("--json") { return try Console.write(names) }
            return try screen.show(
                String(decoding: names, as: UTF8.self).split(separator: "\n").map { (String($0), .plain) })
        }
        let rows = try rows(server)
        if has("--json") { return try Console.write(JSONValue.array(rows.map(\.json)).line) }
        let lines = Self.table(rows).lines(width: Console.width())
        try screen.show(Array(zip(lines, [Style.title] + rows.map(\.style))))
    }
}

extension PortNameServer.Registration {
    /// Whether it is the service that `portctl trace` asks, and not a name that only resembles it.
    var isTraceService: Bool { name == TraceService.name(of: owner) }
}
