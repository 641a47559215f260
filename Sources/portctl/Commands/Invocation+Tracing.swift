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
            Console.note("Recording process \(process) for \(Human.text(duration("--duration"))); Ctrl-C ends.")
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
        let parent = sysEnvironment("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        var path = Array("\(parent)/portctl.XXXXXX".utf8CString)
        guard mkdtemp(&path) != nil else { throw PortError(SystemError(errno), subject: .path(parent)) }
        return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
