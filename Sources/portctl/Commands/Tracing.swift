// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

extension Invocation {
    /// Has a process trace its run loops, and writes what it recorded.
    ///
    /// - Returns: the exit status: that of the command, if there was one.
    func trace() throws -> Int32 {
        guard program.isEmpty else { return try traceProgram() }
        let interrupt = try Interrupt()
        let process = arguments["PID"].flatMap { Int32($0) } ?? 0
        let server = try nameServer()
        let service: RemoteMessagePort
        do throws(PortError) {
            service = try RemoteMessagePort(name: TraceService.name(of: process), nameServer: server)
        } catch {
            guard error.code == .nameUnknown else { throw error }
            Console.leave(
                .absent, "Process \(process) does not let itself be traced: it calls TraceService.start() for that.")
        }
        try service.request(MachMessage(id: TraceService.Order.begin))
        _ = try interrupt.wait(until: .after(duration("--duration")))
        let trace = try service.request(MachMessage(id: TraceService.Order.end))
        try write(trace: trace.bytes)
        return ExitStatus.done.rawValue
    }

    private func traceProgram() throws -> Int32 {
        let output = text("--output") ?? "-"
        // The command may change its directory.
        let path = output == "-" ? "/tmp/portctl-trace.\(sysProcessID()).json" : Self.absolute(output)
        unlink(path)
        // It is for the command and not for what that starts: a process knows its own by the number.
        let process = try Program(program).start(
            environment: ["PORTCTL_TRACE_PATH": path],
            prefix: "\(TraceService.variable)=$$:$PORTCTL_TRACE_PATH; export \(TraceService.variable); "
                + "unset PORTCTL_TRACE_PATH; ")
        for number in [SIGINT, SIGTERM] { signal(number, SIG_IGN) }  // they are the command's
        let status = Program.wait(for: process)
        guard let file = try? sysOpen(path, .reading) else {
            Console.note(
                "The command has left no trace: it calls TraceService.start() for that, and has to exit by itself.")
            return status == 0 ? ExitStatus.failure.rawValue : status
        }
        if output == "-" {
            try Console.write(try sysReadAll(file.raw))
            unlink(path)
        }
        return status
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path
    }

    private func write(trace: [UInt8]) throws {
        let output = text("--output") ?? "-"
        if output == "-" { return try Console.write(trace) }
        let number = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(output)) }
        defer { close(number) }
        try sysWriteAll(number, trace)
    }
}
