// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What is known of a name, and how to show it.
struct NameListing {
    var name: String
    var owner: Int32
    /// The owner's program and its arguments; nil when they cannot be read.
    var command: String?
    var since: String
    var age: Duration
    /// What its port's owner answers; nil when that is started by the first client: `owner` listens until then.
    var answer: StatisticsReply?

    static let columns: [Table.Column] = [
        .init(title: "NAME", narrowest: 12, comfortable: 32), .init(title: "OWNER", isRight: true, expendability: 1),
        .init(title: "COMMAND", narrowest: 8, expendability: 5),
        .init(title: "PEERS", isRight: true, expendability: 3), .init(title: "QUEUE", isRight: true),
        .init(title: "MESSAGES", isRight: true), .init(title: "BYTES", isRight: true, expendability: 4),
        .init(title: "DROPS", isRight: true, expendability: 2),
    ]

    /// The state of the port: its name in JSON, and the text for people.
    private var state: (name: String, text: String) {
        switch answer {
        case .answered?: ("running", "running")
        case .busy?: ("busy", "busy: the owner lives, and did not answer in time")
        case .silent?: ("silent", "the owner does not report")
        case nil: ("waiting", "waiting: the owner is started when a client connects")
        }
    }

    var cells: [String] {
        [name.shown, "\(owner)", command?.shown ?? "-"] + numbers
    }

    private var numbers: [String] {
        switch answer {
        case .answered(let answered)?:
            [
                "\(answered.clientCount)", "\(answered.queueCount)/\(answered.queueLimit)", "\(answered.messageCount)",
                answered.byteCount.shownAsSize, "\(answered.droppedMessageCount)",
            ]
        case .busy?, nil: ["-", state.name, "-", "-", "-"]
        case .silent?: ["-", "-", "-", "-", "-"]
        }
    }

    var style: Style {
        switch answer {
        case .answered(let answered)? where answered.queueCount >= answered.queueLimit: .alarming
        case .answered(let answered)?: answered.droppedMessageCount > 0 ? .suspicious : .plain
        case .busy?: .suspicious
        case .silent?, nil: .silent
        }
    }

    /// The known facts, one per line.
    var facts: [(String, String)] {
        let facts = [
            ("Name", name.shown), (answer == nil ? "Held by" : "Owner", "process \(owner)"),
            ("Command", command?.shown ?? "-"), ("Since", "\(since), \(ageText)"),
            ("State", state.text),
        ]
        guard let answered = answer?.statistics else { return facts }
        return facts + [
            ("Peers", "\(answered.clientCount)"),
            (
                "Queue",
                "\(answered.queueCount) of \(answered.queueLimit), at most \(answered.queueHighWaterMark) so far"
            ),
            ("Messages", "\(answered.messageCount)"),
            ("Bytes", "\(answered.byteCount) (\(answered.byteCount.shownAsSize))"),
            ("Drops", "\(answered.droppedMessageCount)"),
            (
                "Waits",
                "\(answered.waits.sleeps) sleeps, \(answered.waits.spinsThatPaid) spins that paid, "
                    + "\(answered.waits.spinsThatDidNot) that did not"
            ),
        ]
    }

    /// The time of registration is known in whole seconds.
    private var ageText: String {
        let seconds = age.components.seconds
        return seconds > 0 ? Duration.seconds(seconds).shown + " ago" : "just now"
    }

    var json: JSONValue {
        .object([
            ("name", .text(name)), ("owner", .number(owner)), ("command", command.map { .text($0) } ?? .null),
            ("since", .text(since)), ("state", .text(state.name)),
            (
                "statistics",
                answer?.statistics.map { answered in
                    .object([
                        ("peers", .number(answered.clientCount)), ("queued", .number(answered.queueCount)),
                        ("queueLimit", .number(answered.queueLimit)),
                        ("queueHighWaterMark", .number(answered.queueHighWaterMark)),
                        ("messages", .number(answered.messageCount)), ("bytes", .number(answered.byteCount)),
                        ("dropped", .number(answered.droppedMessageCount)),
                        ("sleeps", .number(answered.waits.sleeps)),
                        ("spinsThatPaid", .number(answered.waits.spinsThatPaid)),
                        ("spinsThatDidNot", .number(answered.waits.spinsThatDidNot)),
                    ])
                } ?? .null
            ),
        ])
    }
}

extension NameListing {
    init(_ registration: PortNameServer.Registration, _ answer: StatisticsReply?) {
        self.init(
            name: registration.name, owner: registration.owner, command: Self.command(of: registration.owner),
            since: "\(registration.sinceTime)", age: registration.age, answer: answer)
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
        let file = program.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? program
        return ([file] + words.dropFirst()).joined(separator: " ")
    }
}
