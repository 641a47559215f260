// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

extension Invocation {
    /// Answers until a message with the id 0 comes. The name is free again when this process ends, in whatever way.
    func serve() throws {
        signal(SIGPIPE, SIG_IGN)  // a command need not read what it is given
        let isQuiet = has("--quiet")
        let program = program
        let port = try LocalMessagePort(name: name, nameServer: try nameServer()) { port, message in
            if !isQuiet { Self.say(Self.line(for: message)) }
            if message.id == 0 {
                port.invalidate()
                ThreadRunLoop.main.stop()
            }
            return program.isEmpty || message.id == 0 ? message.bytes : Self.answer(message, with: program)
        }
        port.port.setAllowsWatching(true)
        try port.schedule()
        if !isQuiet { Self.say("process \(sysProcessID()) serves \(name.shown)") }
        ThreadRunLoop.main.run()
    }

    private static func line(for message: MachMessage) -> String {
        let kind = message.expectsReply ? "request" : "message"
        return "\(kind) \(message.id) from process \(message.sender.processID): \(message.bytes.count) bytes"
    }

    /// What a program makes of a message; nil when the requester was told that it failed.
    private static func answer(_ message: MachMessage, with program: [String]) -> [UInt8]? {
        let environment = ["PORT_MESSAGE_ID": "\(message.id)", "PORT_SENDER": "\(message.sender.processID)"]
        do {
            let (output, status) = try Program(program).run(input: message.bytes, environment: environment)
            if status == 0 { return output }
            try? message.replyError(status, "The command ended with status \(status).")
        } catch {
            Console.note("\(program[0]): \(error)")
            try? message.replyError(-1, "The command could not be run: \(error)")
        }
        return nil
    }

    /// Writes a line to standard output at once.
    private static func say(_ line: String) {
        do {
            try Console.write(line + "\n")
        } catch {
            Console.leave(.failure, "standard output: \(error)")
        }
    }
}
