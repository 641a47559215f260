// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

extension Invocation {
    /// Has a process trace its run loops, and writes the trace.
    ///
    /// - Returns: the exit status: that of the command, if there was one.
    func trace() throws -> Int32 {
        guard program.isEmpty else { return try traceProgram() }
        let process = arguments["PID"].flatMap { Int32($0) } ?? 0
        let server = try nameServer()
        let service: RemoteMessagePort
        do throws(PortError) {
            service = try RemoteMessagePort(name: TraceService.name(of: process), nameServer: server)
        } catch {
            guard error.code == .nameUnknown else { throw error }
            if sysHasEnded(process) { Console.leave(.absent, "There is no process \(process).") }
            Console.leave(
                .absent,
                "Process \(process) does not let itself be traced; have its program call TraceService.start().")
        }
        // Any process of the user may have registered the name.
        let owner = service.right.connectedProcess
        guard owner == process else {
            let other = owner.flatMap { $0 > 0 ? "process \($0)" : nil } ?? "a process that is not seen here"
            Console.leave(.absent, "\(service.name) is the name of \(other), not of process \(process).")
        }
        let output = try TraceOutput(text("--output") ?? "-")
        try service.request(MachMessage(id: TraceService.beginID))
        // Until then, and from then on, a signal ends this process; in between it ends the recording.
        let interrupt = try Interrupt()
        if Console.isTerminal(STDERR_FILENO) {
            Console.note("Recording process \(process) for \(duration("--duration").shown); Ctrl-C ends.")
        }
        _ = try interrupt.wait(until: .after(duration("--duration")))
        interrupt.end()
        let trace = try service.request(MachMessage(id: TraceService.endID))
        try output.write(trace.bytes)
        return ExitStatus.done.rawValue
    }

    private func traceProgram() throws -> Int32 {
        try Program(program).check()
        let output = try TraceOutput(text("--output") ?? "-")
        let interrupt = try Interrupt()
        // Other users cannot read, or make, files in a private directory.
        let directory = try Self.makePrivateDirectory()
        let path = directory + "/trace.json"
        defer {
            unlink(path)
            rmdir(directory)
        }
        // The variable is meant for the command and not for its children: a process recognises its own by the number.
        let process = try Program(program).start(
            environment: environment(["PORTCTL_TRACE_PATH": path]),
            prefix: "\(TraceService.variable)=$$:$PORTCTL_TRACE_PATH; export \(TraceService.variable); "
                + "unset PORTCTL_TRACE_PATH; ")
        let status = try Program.wait(for: process, forwarding: interrupt).shellStatus
        guard let file = try? sysOpen(path, .reading) else {
            Console.note("The command has left no trace; have its program call TraceService.start().")
            return status == 0 ? ExitStatus.failure.rawValue : status
        }
        try output.write(try sysReadAll(file.raw))
        return status
    }

    private static func makePrivateDirectory() throws(PortError) -> String {
        let parent = sysEnvironment("TMPDIR").flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil } ?? "/tmp"
        var path = Array("\(parent)/portctl.XXXXXX".utf8CString)
        guard mkdtemp(&path) != nil else { throw PortError(SystemError(errno), subject: .path(parent)) }
        return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The file into which a trace will be written. It is tried before anything is recorded, so that an unusable path fails
/// at once. Its contents stay until there is a trace, and a file that does not exist is made only then: if one exists
/// by then, another process has made it, and it stays as it is.
struct TraceOutput {
    private let path: String
    /// The open file, or standard output; nil when the file must be made later.
    private let number: CInt?

    /// Tries the file at the path; `-` is standard output.
    init(_ path: String) throws(PortError) {
        self.path = path
        guard path != "-" else {
            number = STDOUT_FILENO
            return
        }
        do throws(SystemError) {
            // A signal may end this process before there is a trace, but not while the file is there.
            try withSignalsBlocked { () throws(SystemError) in
                let made = PortCLibrary.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
                if made < 0 { throw SystemError(errno) }
                unlink(path)
                close(made)
            }
            number = nil
        } catch {
            guard error.code == EEXIST else { throw PortError(error, subject: .path(path)) }
            number = try Self.open(path, O_WRONLY)
        }
    }

    private static func open(_ path: String, _ flags: CInt) throws(PortError) -> CInt {
        let number = PortCLibrary.open(path, flags | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(path)) }
        return number
    }

    private static func make(_ path: String) throws -> CInt {
        do throws(PortError) {
            return try open(path, O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            guard error.systemError?.code == EEXIST else { throw error }
            throw Refusal(
                "Another process made \(path) meanwhile. It was left as it is, and the trace is lost; record again.")
        }
    }

    /// Writes the trace. To be called once.
    func write(_ trace: [UInt8]) throws {
        if path == "-" { return try Console.write(Invocation.shown(trace, onTerminal: Console.isTerminal())) }
        let number = try number ?? Self.make(path)
        defer { close(number) }
        _ = ftruncate(number, 0)  // a device or a pipe has nothing to truncate
        do throws(SystemError) {
            try sysWriteAll(number, trace)
        } catch {
            throw PortError(error, subject: .path(path))
        }
        if Console.isTerminal(STDERR_FILENO) {
            Console.note(
                "\(path) has the trace, \(trace.count.shownAsSize) bytes; open it at https://ui.perfetto.dev."
            )
        }
    }
}
