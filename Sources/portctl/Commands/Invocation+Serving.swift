// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

extension Invocation {
    /// Answers one message after the other until a message with the id 0 comes. The name is free again when this
    /// process ends, in whatever way.
    func serve() throws {
        signal(SIGPIPE, SIG_IGN)  // a command need not read its input
        if !program.isEmpty { try Program(program).check() }
        let server = try nameServer()
        let taken = try takeOver(server)
        let port = taken ?? MachPort()
        // While a command runs, messages wait in the port's queue, and requests for the port's statistics are answered.
        let thread = try ResidentThread(name: "port reading")
        let reading = try PortReader(of: port, on: thread.loop)
        // In a shared directory the port serves all its members.
        port.setPeerPolicy(try .members(of: server))
        if taken == nil { try checkInOrRegister(server, for: port) }
        port.setAllowsWatching(true)
        port.setAllowsHandOver(true)
        let tracing = try startTracing(thread.loop, server)
        if !has("--quiet") { Self.printLine("process \(sysProcessID()) serves \(name.shown)") }
        while port.isValid {
            guard let message = try Self.next(of: port) else { continue }
            reading.resume()
            if !has("--quiet") {
                Self.printLine(
                    Self.line(
                        message.id, expectsReply: message.expectsReply, from: message.sender.processID,
                        byteCount: message.bytes.count))
            }
            if message.id == 0 {
                server.unregister(name)
                tracing?.stop()
                Self.reply(message.bytes, to: message)
                port.invalidate()
                if !MachPort.flushReplies(within: Tuning.flushLimit) {
                    Console.note(
                        "A client did not read within \(Tuning.flushLimit); what was left of its reply is lost.")
                }
                return
            }
            answer(message)
        }
        // It was handed over.
        tracing?.stop()
    }

    /// The next message. While the system lacks the resources to wait, this tries again.
    private static func next(of port: MachPort) throws(PortError) -> MachMessage? {
        do throws(PortError) {
            return try port.receive(within: .seconds(3600))
        } catch {
            if error.code == .invalidPort { return nil }
            guard error.isShortage else { throw error }
            sysSleep(Tuning.timeUntilRetry)
            return nil
        }
    }

    /// Checks in for the name with a supervisor that listens for it, such as `portctl activate`, or else registers it.
    private func checkInOrRegister(_ server: PortNameServer, for port: MachPort) throws {
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

    /// The requester may have gone meanwhile: then the reply has no receiver.
    private static func reply(_ bytes: [UInt8], to message: MachMessage) {
        if message.expectsReply { try? message.reply(MachMessage(id: message.id, bytes: bytes)) }
    }

    /// What came, in a line.
    static func line(_ id: Int32, expectsReply: Bool, from process: Int32, byteCount: Int) -> String {
        let kind = expectsReply ? "request" : "message"
        return "\(kind) \(id) from process \(process): \(byteCount) \(byteCount == 1 ? "byte" : "bytes")"
    }

    /// Answers a message with the output of the program; without a program, with the same bytes.
    private func answer(_ message: MachMessage) {
        if program.isEmpty { return Self.reply(message.bytes, to: message) }
        let variables = ["PORT_MESSAGE_ID": "\(message.id)", "PORT_SENDER": "\(message.sender.processID)"]
        do {
            let (output, end) = try Program(program).run(input: message.bytes, environment: environment(variables))
            if end == .exited(0) { return Self.reply(output, to: message) }
            try? message.replyError(end.shellStatus, "The command \(end.sentence).")
        } catch {
            Console.note("\(program[0]): \(error)")
            try? message.replyError(-1, "The command could not be run: \(error)")
        }
    }

    /// Writes a line to standard output at once.
    private static func printLine(_ line: String) {
        do {
            try Console.write(line + "\n")
        } catch {
            Console.leave(.failure, "\(error)")
        }
    }
}

extension Invocation {
    /// Listens for a name and starts the command when a client connects.
    ///
    /// - Returns: the exit status: with `--once` that of the command.
    func activate() throws -> Int32 {
        try Program(program).check()
        let interrupt = try Interrupt()
        let declared = try DeclaredName(name, in: nameServer())
        defer { declared.end() }
        let epoll = try interrupt.epollSet(with: declared.rawValue)
        var starts = StartLimit()
        Console.note("Process \(sysProcessID()) listens for \(name.shown).")
        while !epoll.wait(until: .distantFuture).contains(where: { $0.key == Interrupt.signalKey }) {
            guard starts.mayStart(at: .now) else {
                Console.note(
                    "The command was started \(Tuning.startCount) times in \(Tuning.startSpan.components.seconds) "
                        + "seconds, and its clients still wait; it is not started again.")
                return ExitStatus.failure.rawValue
            }
            guard let process = try start(with: declared.rawValue, until: epoll) else { break }
            let (end, wasInterrupted) = try Program.wait(for: process, endingAt: interrupt)
            if wasInterrupted { return ExitStatus.done.rawValue }
            if has("--once") { return end.shellStatus }
            if end != .exited(0) { Console.note("The command \(end.sentence).") }
        }
        return ExitStatus.done.rawValue
    }

    /// Starts the command with the socket. While the system lacks the resources, this tries again.
    ///
    /// - Returns: its process; nil when a signal came first.
    private func start(with socket: CInt, until epoll: borrowing EpollSet) throws -> pid_t? {
        var hasReported = false
        while true {
            do throws(SystemError) {
                return try Program(program).start(
                    environment: environment(["LISTEN_FDS": "1", "LISTEN_FDNAMES": nil, "LISTEN_PID": nil]),
                    descriptors: [nil, nil, nil, socket], prefix: "LISTEN_PID=$$; export LISTEN_PID; ")
            } catch {
                guard error.isTemporary else { throw error }
                if !hasReported { Console.note("The command cannot be started now: \(error) It is tried again.") }
                hasReported = true
                sysSleep(Tuning.timeUntilRetry)
                if epoll.wait(until: .distantPast).contains(where: { $0.key == Interrupt.signalKey }) { return nil }
            }
        }
    }
}

/// Limits how often a command is started: one that ends at once, without accepting its clients, would be started
/// forever.
struct StartLimit {
    private var starts: [MonotonicInstant] = []

    /// Counts a start.
    ///
    /// - Returns: false when there were too many.
    mutating func mayStart(at moment: MonotonicInstant) -> Bool {
        starts.removeAll { $0.duration(to: moment) >= Tuning.startSpan }
        starts.append(moment)
        return starts.count <= Tuning.startCount
    }
}
