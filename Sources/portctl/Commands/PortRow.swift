// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What is known of a name: decides how it is shown.
struct PortRow {
    var name: String
    var owner: Int32
    /// The owner's program and its arguments; nil when that cannot be seen.
    var command: String?
    var since: String
    var age: Duration
    /// Nil when the owner does not tell.
    var statistics: PortStatistics?

    init(_ registration: PortNameServer.Registration, _ statistics: PortStatistics?) {
        self.init(
            name: registration.name, owner: registration.owner, command: Self.command(of: registration.owner),
            since: "\(registration.sinceTime)", age: registration.age, statistics: statistics)
    }

    init(
        name: String, owner: Int32, command: String?, since: String, age: Duration, statistics: PortStatistics?
    ) {
        self.name = name
        self.owner = owner
        self.command = command
        self.since = since
        self.age = age
        self.statistics = statistics
    }

    static let columns: [Table.Column] = [
        .init(title: "NAME", narrowest: 12, comfortable: 32), .init(title: "OWNER", isRight: true, expendability: 1),
        .init(title: "COMMAND", narrowest: 8, expendability: 5),
        .init(title: "PEERS", isRight: true, expendability: 3), .init(title: "QUEUE", isRight: true),
        .init(title: "MESSAGES", isRight: true), .init(title: "BYTES", isRight: true, expendability: 4),
        .init(title: "DROPS", isRight: true, expendability: 2),
    ]

    var cells: [String] {
        let numbers =
            statistics.map { told in
                [
                    "\(told.clientCount)", "\(told.queueCount)/\(told.queueLimit)", "\(told.messageCount)",
                    HumanSize.text(told.byteCount), "\(told.droppedMessageCount)",
                ]
            } ?? Array(repeating: "-", count: 5)
        return [name.shown, "\(owner)", command?.shown ?? "-"] + numbers
    }

    var style: Style {
        guard let statistics else { return .silent }
        if statistics.queueCount >= statistics.queueLimit { return .alarming }
        return statistics.droppedMessageCount > 0 ? .suspicious : .plain
    }

    /// A line for each thing that is known.
    var facts: [(String, String)] {
        var facts = [
            ("Name", name.shown), ("Owner", "process \(owner)"), ("Command", command?.shown ?? "-"),
            ("Since", "\(since), \(HumanDuration.text(age)) ago"),
        ]
        guard let told = statistics else { return facts + [("Port", "does not tell")] }
        facts += [
            ("Peers", "\(told.clientCount)"),
            ("Queue", "\(told.queueCount) of \(told.queueLimit), at most \(told.queueHighWaterMark) so far"),
            ("Messages", "\(told.messageCount)"), ("Bytes", "\(told.byteCount) (\(HumanSize.text(told.byteCount)))"),
            ("Drops", "\(told.droppedMessageCount)"),
        ]
        return facts
    }

    var json: JSONValue {
        .object([
            ("name", .text(name)), ("owner", .number(owner)), ("command", command.map { .text($0) } ?? .null),
            ("since", .text(since)),
            (
                "statistics",
                statistics.map { told in
                    .object([
                        ("peers", .number(told.clientCount)), ("queued", .number(told.queueCount)),
                        ("queueLimit", .number(told.queueLimit)),
                        ("queueHighWaterMark", .number(told.queueHighWaterMark)),
                        ("messages", .number(told.messageCount)), ("bytes", .number(told.byteCount)),
                        ("dropped", .number(told.droppedMessageCount)),
                    ])
                } ?? .null
            ),
        ])
    }
}

extension PortRow {
    /// The program of a process, without its directory, and its arguments.
    static func command(of process: Int32) -> String? {
        guard let file = try? sysOpen("/proc/\(process)/cmdline", .reading), let line = try? sysReadAll(file.raw) else {
            return nil
        }
        return command(line)
    }

    /// Reads what the kernel tells: the words, each ended by a NUL.
    static func command(_ line: [UInt8]) -> String? {
        let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        guard let program = words.first else { return nil }
        let file = program.split(separator: "/").last.map(String.init) ?? program
        return ([file] + words.dropFirst()).joined(separator: " ")
    }
}
