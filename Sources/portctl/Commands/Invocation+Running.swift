// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    /// Runs the command.
    ///
    /// - Returns: the exit status.
    func run() throws -> Int32 {
        // A shared directory that the environment names is accepted, as with the option.
        if let path = sysEnvironment(PortDirectory.variable), path.utf8.first == UInt8(ascii: "/") {
            PortDirectory.setDomain(path)
        }
        switch command {
        case .list: try list()
        case .info: try info()
        case .send: try send()
        case .request: try request()
        case .serve: try serve()
        case .watch: try watch()
        case .activate: return try activate()
        case .handover: try handOver()
        case .wait: _ = try nameServer().waitFor(name, within: duration("--timeout"))
        case .trace: return try trace()
        case .bench: try bench()
        case .doctor: return try (doctor() ? ExitStatus.done : .failure).rawValue
        case .completion: try complete()
        case .help: try help()
        }
        return ExitStatus.done.rawValue
    }

    /// Checks that ports work here, and measures how fast.
    private func bench() throws {
        if let launcher = try SendRight.bootstrap(), sysEnvironment(Checks.workerVariable) != nil {
            return try Checks.serve(launcher)
        }
        let checks = Checks(
            span: has("--quick") ? Tuning.quickCheckSpan : Tuning.checkSpan,
            showsProgress: Console.isTerminal() && !has("--json"), server: try nameServer())
        let results = try checks.run(worker: Checks.launchWorker())
        let table = Table(
            columns: [
                .init(title: "CHECK"), .init(title: "RESULT", isRight: true), .init(title: "TIMES", isRight: true),
            ],
            rows: results.map { [$0.name, $0.shown, "\($0.count)"] })
        try write(table, json: .array(results.map(\.json)))
    }

    /// Shows what this system allows and refuses.
    ///
    /// - Returns: whether it refuses nothing that the library uses.
    private func doctor() throws -> Bool {
        let findings = Doctor(directory: options["--directory"]).findings()
        let table = Table(columns: ProbeResult.columns, rows: findings.map(\.cells))
        try write(table, json: .array(findings.map(\.json))) { $0 == 0 ? .title : findings[$0 - 1].style }
        if !has("--json") {
            let advice = findings.compactMap(\.advice)
            let width = Console.width() ?? 100
            try Console.write(
                advice.map { "\n" + Help.wrapped($0.shown, width: width).joined(separator: "\n") + "\n" }.joined())
        }
        return findings.allSatisfy { $0.state != .refused }
    }

    private func help() throws {
        let width = min(Console.width() ?? 100, 120)
        if has("--version") {
            try Console.write(Help.version + "\n")
        } else if has("--man") {
            try Console.write(Help.manPage)
        } else if let command = arguments["COMMAND"].flatMap({ Command(rawValue: $0) }) {
            try Console.write(Help.text(of: command.description, width: width))
        } else {
            try Console.write(Help.overview(width: width))
        }
    }

    private func complete() throws {
        let shell = arguments["SHELL"].flatMap { Shell(rawValue: $0) } ?? .bash
        if program.isEmpty { return try Console.write(Completion.script(for: shell)) }
        let answer = Completion.answer(to: program, for: shell) { directory in
            // Completion makes no directory: the user is only typing.
            let server = directory.map { try? Self.existingServer($0) } ?? PortNameServer.shared
            return ((try? server?.list()) ?? []).map { ($0.name, $0.owner) }
        }
        try Console.write(answer)
    }

    /// The variables for a command that is started, besides this process's environment, so that it finds the same
    /// names.
    func environment(_ variables: [String: String?]) -> [String: String?] {
        guard let directory = options["--directory"] else { return variables }
        return variables.merging([PortDirectory.variable: directory]) { own, _ in own }
    }

    func nameServer() throws -> PortNameServer {
        guard let directory = options["--directory"] else { return .shared }
        switch command {
        case .serve, .activate, .bench: return try PortNameServer(sharedDirectory: directory)
        default: return try Self.existingServer(directory)
        }
    }

    /// The name server of a directory that must exist: a mistyped one is not made.
    private static func existingServer(_ directory: String) throws -> PortNameServer {
        if try PortDirectory.openExisting(path: directory, mayBeShared: true) == nil {
            guard try sysStatus(atPath: directory) != nil else {
                throw Refusal(
                    "There is no directory \(directory); check --directory, or start a port there: portctl serve makes it."
                )
            }
            // An empty directory may become one of names, and so may one that has only rules.
            guard PortDirectory.entries.isSuperset(of: try sysList(directory)) else {
                throw Refusal("\(directory) is no directory of names; check --directory.")
            }
        }
        return try PortNameServer(sharedDirectory: directory)
    }

    /// The name that the user probably meant, as a sentence that follows the error's; nil when no name is near.
    func suggestion(after error: any Error) -> String? {
        guard (error as? PortError)?.code == .nameUnknown, arguments["NAME"] != nil, let server = try? nameServer(),
            let held = try? server.list() + server.listDeclared()
        else { return nil }
        let names = held.filter { !$0.isTraceService && $0.name != name }.map(\.name)
        return name.nearest(of: names).map { " Did you mean \($0)?" }
    }

    func remotePort() throws -> RemoteMessagePort {
        try RemoteMessagePort(name: name, nameServer: try nameServer())
    }

    /// Writes a table, or JSON when that was asked for.
    func write(_ table: Table, json: JSONValue, style: (Int) -> Style = { $0 == 0 ? .title : .plain }) throws {
        if has("--json") { return try Console.write(json) }
        try Console.write(table.lines(width: Console.width()).enumerated().map { ($1, style($0)) })
    }
}
