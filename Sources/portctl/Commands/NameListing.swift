// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What is known of a name, and how to show it.
struct NameListing {
    /// The state of the port.
    enum State: Hashable {
        case running(PortStatistics)
        /// Its owner is alive, and has not answered in time.
        case busy
        /// Its owner does not report its state.
        case silent
        /// Its owner is started when a client connects; `owner` listens until then.
        case waiting

        init(_ answer: StatisticsReply) {
            self =
                switch answer {
                case .answered(let statistics): .running(statistics)
                case .busy: .busy
                case .silent: .silent
                }
        }

        /// Its name in JSON.
        var name: String {
            switch self {
            case .running: "running"
            case .busy: "busy"
            case .silent: "silent"
            case .waiting: "waiting"
            }
        }
    }

    var name: String
    var owner: Int32
    /// The owner's program and its arguments; nil when they cannot be read.
    var command: String?
    var since: String
    var age: Duration
    var state: State

    static let columns: [Table.Column] = [
        .init(title: "NAME", narrowest: 12, comfortable: 32), .init(title: "OWNER", isRight: true, expendability: 1),
        .init(title: "COMMAND", narrowest: 8, expendability: 5),
        .init(title: "PEERS", isRight: true, expendability: 3), .init(title: "QUEUE", isRight: true),
        .init(title: "MESSAGES", isRight: true), .init(title: "BYTES", isRight: true, expendability: 4),
        .init(title: "DROPS", isRight: true, expendability: 2),
    ]

    var statistics: PortStatistics? {
        if case .running(let statistics) = state { statistics } else { nil }
    }

    var cells: [String] {
        [name.shown, "\(owner)", command?.shown ?? "-"] + numbers
    }

    private var numbers: [String] {
        switch state {
        case .running(let answered):
            [
                "\(answered.clientCount)", "\(answered.queueCount)/\(answered.queueLimit)", "\(answered.messageCount)",
                answered.byteCount.shownAsSize, "\(answered.droppedMessageCount)",
            ]
        case .busy, .waiting: ["-", state.name, "-", "-", "-"]
        case .silent: ["-", "-", "-", "-", "-"]
        }
    }

    var style: Style {
        switch state {
        case .running(let answered) where answered.queueCount >= answered.queueLimit: .alarming
        case .running(let answered): answered.droppedMessageCount > 0 ? .suspicious : .plain
        case .busy: .suspicious
        case .silent, .waiting: .silent
        }
    }

    /// The known facts, one per line.
    var facts: [(String, String)] {
        let facts = [
            ("Name", name.shown), (state == .waiting ? "Held by" : "Owner", "process \(owner)"),
            ("Command", command?.shown ?? "-"), ("Since", "\(since), \(ageText)"),
            ("State", stateText),
        ]
        guard let answered = statistics else { return facts }
        return facts + [
            ("Peers", "\(answered.clientCount)"),
            (
                "Queue",
                "\(answered.queueCount) of \(answered.queueLimit), at most \(answered.queueHighWaterMark) so far"
            ),
            ("Messages", "\(answered.messageCount)"),
            ("Bytes", "\(answered.byteCount) (\(answered.byteCount.shownAsSize))"),
            ("Drops", "\(answered.droppedMessageCount)"),
        ]
    }

    /// The time of registration is known in whole seconds.
    private var ageText: String {
        let seconds = age.components.seconds
        return seconds > 0 ? Duration.seconds(seconds).shown + " ago" : "just now"
    }

    private var stateText: String {
        switch state {
        case .running: "running"
        case .busy: "busy: the owner lives, and did not answer in time"
        case .silent: "the owner does not report"
        case .waiting: "waiting: the owner is started when a client connects"
        }
    }

    var json: JSONValue {
        .object([
            ("name", .text(name)), ("owner", .number(owner)), ("command", command.map { .text($0) } ?? .null),
            ("since", .text(since)), ("state", .text(state.name)),
            (
                "statistics",
                statistics.map { answered in
                    .object([
                        ("peers", .number(answered.clientCount)), ("queued", .number(answered.queueCount)),
                        ("queueLimit", .number(answered.queueLimit)),
                        ("queueHighWaterMark", .number(answered.queueHighWaterMark)),
                        ("messages", .number(answered.messageCount)), ("bytes", .number(answered.byteCount)),
                        ("dropped", .number(answered.droppedMessageCount)),
                    ])
                } ?? .null
            ),
        ])
    }
}

extension NameListing {
    init(_ registration: PortNameServer.Registration, _ state: State) {
        self.init(
            name: registration.name, owner: registration.owner, command: Self.command(of: registration.owner),
            since: "\(registration.sinceTime)", age: registration.age, state: state)
    }

    /// How many bytes of a command line are read at most: a process may have any number.
    private static let commandLimit = 16_384

    /// The program of a process, without its directory, and its arguments.
    static func command(of process: Int32) -> String? {
        guard let file = try? sysOpen("/proc/\(process)/cmdline", .reading),
            let line = try? sysReadAll(file.raw, limit: commandLimit)
        else { return nil }
        return command(line)
    }

    /// Parses the kernel's text: the words, each ended by a NUL.
    static func command(_ line: [UInt8]) -> String? {
        let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        guard let program = words.first else { return nil }
        let file = program.split(separator: "/").last.map(String.init) ?? program
        return ([file] + words.dropFirst()).joined(separator: " ")
    }
}
