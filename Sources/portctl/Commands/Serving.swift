// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

extension Invocation {
    /// Answers one message after the other until a message with the id 0 comes. The name is free again when this
    /// process ends, in whatever way.
    func serve() throws {
        signal(SIGPIPE, SIG_IGN)  // a command need not read its input
        if !program.isEmpty { try Program(program).check() }
        let (server, port) = (try nameServer(), MachPort())
        // While a command runs, messages wait in the port's queue, and requests for the port's statistics are answered.
        let thread = try ResidentThread(name: "port reading")
        let reading = try PortReading(of: port, on: thread.loop)
        // In a shared directory the port serves all its members.
        port.setPeerPolicy(try .members(of: server))
        try take(server, for: port)
        port.setAllowsWatching(true)
        let tracing = try startTracing(thread.loop, server)
        if !has("--quiet") { Self.say("process \(sysProcessID()) serves \(name.shown)") }
        while true {
            guard let message = try Self.next(of: port) else { continue }
            reading.goOn()
            if !has("--quiet") { Self.say(Self.line(for: message)) }
            if message.id == 0 {
                server.unregister(name)
                tracing?.stop()
                Self.reply(message.bytes, to: message)
                port.invalidate()
                return flushReplies()
            }
            answer(message)
        }
    }

    /// The next message. While the system lacks the resources to wait, this tries again.
    private static func next(of port: MachPort) throws(PortError) -> MachMessage? {
        do throws(PortError) {
            return try port.receive(within: .seconds(3600))
        } catch {
            guard error.code == .descriptorLimit || error.systemError?.isShortage == true else { throw error }
            sysPause(.milliseconds(100))
            return nil
        }
    }

    /// Checks in for the name with a supervisor that listens for it, such as `portctl activate`, or else registers it.
    private func take(_ server: PortNameServer, for port: MachPort) throws {
        do throws(PortError) {
            try server.checkIn(port, name: name)
        } catch {
            guard error.code == .nameNotDeclared else { throw error }
            try server.register(port, name: name)
        }
    }

    /// In a shared directory whose rules do not allow the service's name, there is no trace service.
    private func startTracing(_ loop: ThreadRunLoop, _ server: PortNameServer) throws -> TraceService? {
        do throws(PortError) {
            return try TraceService.start(tracing: [loop], nameServer: server)
        } catch {
            if error.code == .nameNotAllowed { return nil }
            throw error
        }
    }

    /// How long the process stays for clients that read too slowly to have room for their replies.
    private static let flushLimit = Duration.seconds(10)

    private func flushReplies() {
        if MachPort.flushReplies(within: Self.flushLimit) { return }
        Console.note("A client did not read within \(Self.flushLimit); what was left of its reply is lost.")
    }

    /// The requester may have gone meanwhile: then the reply has no receiver.
    private static func reply(_ bytes: [UInt8], to message: MachMessage) {
        if message.expectsReply { try? message.reply(MachMessage(id: message.id, bytes: bytes)) }
    }

    static func line(for message: MachMessage) -> String {
        let kind = message.expectsReply ? "request" : "message"
        return "\(kind) \(message.id) from process \(message.sender.processID): \(HumanSize.bytes(message.bytes.count))"
    }

    /// Answers a message with the output of the program; without a program, with the same bytes.
    private func answer(_ message: MachMessage) {
        if program.isEmpty { return Self.reply(message.bytes, to: message) }
        let variables = ["PORT_MESSAGE_ID": "\(message.id)", "PORT_SENDER": "\(message.sender.processID)"]
        do {
            let (output, end) = try Program(program).run(input: message.bytes, environment: environment(variables))
            if end == .exited(0) { return Self.reply(output, to: message) }
            try? message.replyError(end.status, "The command \(end).")
        } catch {
            Console.note("\(program[0]): \(error)")
            try? message.replyError(-1, "The command could not be run: \(error)")
        }
    }

    /// Writes a line to standard output at once.
    private static func say(_ line: String) {
        do {
            try Console.write(line + "\n")
        } catch {
            Console.leave(.failure, "\(error)")
        }
    }
}
