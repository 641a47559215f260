// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

extension Invocation {
    /// Listens for a name and starts the command when somebody connects.
    ///
    /// - Returns: the exit status: with `--once` that of the command.
    func activate() throws -> Int32 {
        let interrupt = try Interrupt()
        let path = try nameServer().makeDeclaredPath(of: name)
        let socket = try DeclaredSocket(path)
        var starts = StartLimit()
        Console.note("Process \(sysProcessID()) listens for \(name.shown).")
        while true {
            guard try Self.waits(for: socket.raw, unless: interrupt) else { return ExitStatus.done.rawValue }
            guard starts.mayStart(at: .now) else {
                Console.note("The command has been started \(StartLimit.count) times in \(StartLimit.span).")
                return ExitStatus.failure.rawValue
            }
            let status = try run(beside: socket.raw, until: interrupt)
            guard let status else { return ExitStatus.done.rawValue }
            if has("--once") { return status }
            if status != 0 { Console.note("The command ended with status \(status).") }
        }
    }

    /// - Returns: false when a signal came first.
    private static func waits(for socket: CInt, unless interrupt: Interrupt) throws -> Bool {
        let epoll = try EpollSet()
        try epoll.add(socket, .readable, key: 0)
        try epoll.add(interrupt.descriptor, .readable, key: 1)
        return !epoll.wait(until: .distantFuture).contains { $0.key == 1 }
    }

    /// Runs the command until it ends, or a signal comes, which it gets too.
    ///
    /// - Returns: its status; nil after a signal.
    private func run(beside socket: CInt, until interrupt: Interrupt) throws -> Int32? {
        let process = try Program(program).start(
            environment: ["LISTEN_FDS": "1", "LISTEN_FDNAMES": nil, "LISTEN_PID": nil],
            descriptors: [nil, nil, nil, socket], prefix: "LISTEN_PID=$$; export LISTEN_PID; ")
        guard let end = try sysProcessDescriptor(ofChild: process) else { return Program.wait(for: process) }
        let epoll = try EpollSet()
        try epoll.add(end.raw, .readable, key: 0)
        try epoll.add(interrupt.descriptor, .readable, key: 1)
        let wasInterrupted = epoll.wait(until: .distantFuture).contains { $0.key == 1 }
        if wasInterrupted { kill(process, SIGTERM) }
        let status = Program.wait(for: process)
        return wasInterrupted ? nil : status
    }
}

/// How often a command is started: one that ends at once, without taking its clients, would be started for ever.
struct StartLimit {
    static let count = 5
    static let span = "10 seconds"
    private static let duration = Duration.seconds(10)

    private var starts: [MonotonicInstant] = []

    /// Counts a start.
    ///
    /// - Returns: false when there were too many.
    mutating func mayStart(at moment: MonotonicInstant) -> Bool {
        starts.removeAll { $0.duration(to: moment) >= Self.duration }
        starts.append(moment)
        return starts.count <= Self.count
    }
}

/// A socket that listens at a declared path; the path goes with it.
private struct DeclaredSocket: ~Copyable {
    private let path: String
    private let socket: FileDescriptor

    var raw: CInt { socket.raw }

    init(_ path: String) throws(PortError) {
        socket = try Self.listening(path)
        self.path = path
    }

    private static func listening(_ path: String) throws(PortError) -> FileDescriptor {
        do throws(SystemError) {
            let socket = try sysPacketSocket()
            try bind(socket.raw, path)
            try sysListen(socket.raw, backlog: 4096)
            return socket
        } catch {
            throw PortError(error, subject: .path(path))
        }
    }

    deinit {
        unlink(path)
    }

    /// One that is left by a process that was killed is taken away.
    private static func bind(_ socket: CInt, _ path: String) throws(SystemError) {
        do throws(SystemError) {
            try sysBind(socket, path: path)
        } catch {
            guard error.code == EADDRINUSE else { throw error }
            let other = try sysPacketSocket()
            do throws(SystemError) {
                _ = try sysConnect(other.raw, path: path)
            } catch {
                guard error.code == ECONNREFUSED else { throw error }
                unlink(path)
                return try sysBind(socket, path: path)
            }
            throw error
        }
    }
}
