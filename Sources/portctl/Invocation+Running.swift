// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

extension Invocation {
    /// Does what was asked for.
    func run() throws {
        switch command {
        case .help: try sysWriteAll(STDOUT_FILENO, Array(Self.help.utf8))
        case .list: try list()
        case .send(let name, let id, let body): try remotePort(name).send(message(id, body), sendLimit: sendLimit)
        case .request(let name, let id, let body):
            let request = try message(id, body)
            let reply = try remotePort(name).request(request, sendLimit: sendLimit, replyLimit: replyLimit)
            try sysWriteAll(STDOUT_FILENO, reply.bytes)
        case .serve(let name): try serve(name)
        }
    }

    private func nameServer() throws -> PortNameServer {
        guard let directory else { return .shared }
        return try PortNameServer(directory: directory)
    }

    private func remotePort(_ name: String) throws -> RemoteMessagePort {
        try RemoteMessagePort(name: name, nameServer: try nameServer())
    }

    private func message(_ id: Int32, _ body: Body) throws -> MachMessage {
        switch body {
        case .text(let text): MachMessage(id: id, text: text)
        case .standardInput: MachMessage(id: id, bytes: try sysReadAll(STDIN_FILENO))
        }
    }

    private func list() throws {
        let rows = try nameServer().list().map { (name: $0.name.shown, owner: String($0.owner)) }
        let nameWidth = rows.map(\.name.count).max() ?? 0
        let ownerWidth = rows.map(\.owner.count).max() ?? 0
        let lines = rows.map { row in
            row.name + String(repeating: " ", count: nameWidth - row.name.count + 2 + ownerWidth - row.owner.count)
                + row.owner + "\n"
        }
        try sysWriteAll(STDOUT_FILENO, Array(lines.joined().utf8))
    }

    /// Answers until a message with the id 0 comes. The name is free again when this process ends, in whatever way.
    private func serve(_ name: String) throws {
        let port = try LocalMessagePort(name: name, nameServer: try nameServer()) { port, message in
            let kind = message.expectsReply ? "request" : "message"
            say("\(kind) \(message.id) from process \(message.sender.processID): \(message.bytes.count) bytes")
            if message.id == 0 {
                port.invalidate()
                ThreadRunLoop.current.stop()
            }
            return message.bytes
        }
        try port.schedule()
        say("process \(sysProcessID()) serves \(name.shown)")
        ThreadRunLoop.current.run()
    }
}

/// Writes a line to standard output at once.
private func say(_ line: String) {
    do {
        try sysWriteAll(STDOUT_FILENO, Array((line + "\n").utf8))
    } catch {
        leave(1, "standard output: \(error)")
    }
}

extension String {
    /// The text without what would move a terminal's cursor or break a line.
    var shown: String {
        unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text += scalar.escaped(asASCII: true)
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
