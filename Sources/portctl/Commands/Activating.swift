// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    /// Listens for a name and starts the command when a client connects.
    ///
    /// - Returns: the exit status: with `--once` that of the command.
    func activate() throws -> Int32 {
        try Program(program).check()
        let interrupt = try Interrupt()
        let declared = try DeclaredName(name, in: nameServer())
        defer { declared.end() }
        var starts = StartLimit()
        Console.note("Process \(sysProcessID()) listens for \(name.shown).")
        while true {
            guard try Self.waits(for: declared.rawValue, unless: interrupt) else { return ExitStatus.done.rawValue }
            guard starts.mayStart(at: .now) else {
                Console.note(
                    "The command was started \(StartLimit.count) times in \(StartLimit.span), and its clients still "
                        + "wait; it is not started again.")
                return ExitStatus.failure.rawValue
            }
            let process = try Program(program).start(
                environment: environment(["LISTEN_FDS": "1", "LISTEN_FDNAMES": nil, "LISTEN_PID": nil]),
                descriptors: [nil, nil, nil, declared.rawValue], prefix: "LISTEN_PID=$$; export LISTEN_PID; ")
            let (end, wasInterrupted) = try Program.wait(for: process, endingAt: interrupt)
            if wasInterrupted { return ExitStatus.done.rawValue }
            if has("--once") { return end.status }
            if end != .exited(0) { Console.note("The command \(end).") }
        }
    }

    /// - Returns: false when a signal came first.
    private static func waits(for socket: CInt, unless interrupt: Interrupt) throws -> Bool {
        let epoll = try EpollSet()
        try epoll.add(socket, .readable, key: 0)
        try epoll.add(interrupt.descriptor, .readable, key: 1)
        return !epoll.wait(until: .distantFuture).contains { $0.key == 1 }
    }
}

/// Limits how often a command is started: one that ends at once, without accepting its clients, would be started
/// forever.
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
