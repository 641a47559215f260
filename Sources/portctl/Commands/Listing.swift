// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    func list() throws {
        let server = try nameServer()
        if has("--names") {
            return try Console.write(server.list().map { $0.name.shown + "\n" }.joined())
        }
        if has("--watch") { return try watchList(server) }
        let rows = try rows(server)
        if rows.isEmpty, !has("--json") {
            if Console.isTerminal { Console.note("No name is held.") }
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
        try Console.write(table.lines().dropFirst().map { $0 + "\n" }.joined())
    }

    private func rows(_ server: PortNameServer) throws -> [PortRow] {
        try server.listStatistics(within: duration("--timeout")).map { PortRow($0.registration, $0.statistics) }
    }

    private static func table(_ rows: [PortRow]) -> Table {
        Table(columns: PortRow.columns, rows: rows.map(\.cells))
    }

    /// Shows the list again and again, until a signal comes: on a terminal in place.
    private func watchList(_ server: PortNameServer) throws {
        let interrupt = try Interrupt()
        let screen = Screen()
        defer { screen.end() }
        var left = count("--count") ?? .max
        while true {
            let rows = try rows(server)
            if has("--json") {
                try Console.write(JSONValue.array(rows.map(\.json)).line)
            } else {
                let lines = Self.table(rows).lines(width: Console.width)
                let styles = [Style.title] + rows.map(\.style)
                try screen.show(Array(zip(lines, styles)))
            }
            left -= 1
            if left == 0 { return }
            if try interrupt.wait(until: .after(duration("--interval"))) { return }
        }
    }
}
