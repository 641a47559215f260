// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

extension Invocation {
    /// Starts the command, and has the port that has the name handed over to it.
    func handOver() throws {
        try Program(program).check()
        let (server, limit) = (try nameServer(), duration("--timeout"))
        let old = try server.lookUp(name).owner().processID
        let port = MachPort()
        defer { port.invalidate() }
        let process = try startSuccessor(of: port)
        do {
            let successor = try Self.checkIn(of: process, at: port, until: .after(limit))
            try server.askForHandOver(of: name, to: successor, within: limit)
        } catch {
            // An answer may have come too late: the command is not ended when it has the port.
            guard (try? server.lookUp(name).owner().processID) == process else {
                Self.end(process)
                throw error
            }
        }
        Console.note("Process \(process) serves \(name.shown) now, in place of process \(old).")
    }

    /// Starts the command with a right to a port.
    ///
    /// - Returns: its process.
    private func startSuccessor(of port: MachPort) throws -> pid_t {
        let bootstrap = try PortBootstrap(to: port)
        let variables = bootstrap.environment().mapValues { Optional($0) }
        let process = try Program(program).start(
            environment: environment(variables), descriptors: [nil, nil, nil, bootstrap.descriptor])
        do {
            try bootstrap.connect(process: process)
        } catch {
            Self.end(process)
            throw error
        }
        return process
    }

    /// Waits until the command has checked in.
    ///
    /// - Returns: the right to its port.
    private static func checkIn(
        of process: pid_t, at port: MachPort, until deadline: MonotonicInstant
    ) throws -> SendRight {
        while true {
            let message = try port.receive(within: Tuning.timeUntilRetry)
            if let message, message.id == MachMessage.checkIn, let right = message.replyPort { return right }
            if Program.hasEnded(process) {
                throw Refusal(
                    "The command ended before it checked in; a successor uses LocalMessagePort(takingOverFrom:).")
            }
            if deadline <= .now {
                throw Refusal("The command did not check in in time; --timeout sets how long to wait.")
            }
        }
    }

    /// Ends a command that did not become a successor.
    private static func end(_ process: pid_t) {
        kill(process, SIGTERM)
        let deadline = MonotonicInstant.after(Tuning.flushLimit)
        while !Program.hasEnded(process) {
            if deadline <= .now { kill(process, SIGKILL) }
            sysSleep(Tuning.timeUntilRetry)
        }
        _ = Program.wait(for: process)
    }

    /// Takes over the port for which `portctl handover` has started this process.
    ///
    /// - Returns: the port; nil when this was started otherwise.
    func takeOver(_ server: PortNameServer) throws -> MachPort? {
        guard let launcher = try SendRight.bootstrap() else { return nil }
        let message = try LocalMessagePort.receiveRight(from: launcher, within: Tuning.takeOverLimit)
        guard let port = message.receiveRights.first else { throw Refusal("What has come is no port.") }
        guard try server.adoptNames(of: port).contains(where: { $0.string == name }) else {
            port.invalidate()
            throw Refusal("The port that has come does not have the name \(name.shown).")
        }
        return port
    }
}
