// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

/// A command and its arguments. It is searched for in `PATH` as a shell does it.
struct Program {
    private let words: [String]

    init(_ words: [String]) {
        self.words = words
    }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - environment: variables that it gets besides this process's environment.
    ///   - descriptors: become its descriptors 0, 1, 2 and so on; nil for this process's own.
    ///   - prefix: commands that the shell runs before it.
    /// - Returns: its process, which must be waited for.
    /// - Throws: the error when the system gives no process.
    func start(
        environment: [String: String?] = [:], descriptors: [CInt?] = [nil, nil, nil], prefix: String = ""
    ) throws(SystemError) -> pid_t {
        try sysSpawn(
            "/bin/sh", arguments: ["-c", "\(prefix)exec \"$0\" \"$@\""] + words, environment: environment, in: nil,
            descriptors: descriptors)
    }

    /// Checks that the command exists, so that an error comes before it is needed.
    ///
    /// - Throws: the reason why it cannot be run.
    func check() throws(Refusal) {
        let name = words.first ?? ""
        let isPath = Self.isPath(name)
        var reason = ENOENT
        for path in Self.paths(of: name) {
            var status = stat()
            guard stat(path, &status) == 0 else {
                if isPath { reason = errno }
                continue
            }
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            if !isDirectory, access(path, X_OK) == 0 { return }
            if !isDirectory || isPath { reason = EACCES }
        }
        throw Refusal("The command \(name) cannot be run: \(SystemError(reason)).")
    }

    private static func isPath(_ name: String) -> Bool { name.utf8.contains(UInt8(ascii: "/")) }

    /// The paths at which a shell searches for a command.
    private static func paths(of name: String) -> [String] {
        if name.isEmpty || isPath(name) { return [name] }
        let list = sysEnvironment("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return list.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map {
            ($0.isEmpty ? "." : String(Substring($0))) + "/" + name
        }
    }

    /// Waits for the end of a process.
    static func wait(for process: pid_t) -> ChildEnd {
        var status: CInt = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        return status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signalled(status & 0x7F)
    }

    /// Waits for the end of a process. On the first signal meanwhile it gets SIGTERM, on each further one SIGKILL.
    ///
    /// - Returns: how it ended, and whether a signal came.
    static func wait(
        for process: pid_t, endingAt interrupt: Interrupt
    ) throws(SystemError) -> (end: ChildEnd, wasInterrupted: Bool) {
        var wasInterrupted = false
        let end = try wait(for: process, interrupt) { _ in
            defer { wasInterrupted = true }
            return wasInterrupted ? SIGKILL : SIGTERM
        }
        return (end, wasInterrupted)
    }

    /// Waits for the end of a process. Signals of the terminal reach it anyway; signals of other processes are
    /// forwarded.
    static func wait(for process: pid_t, forwarding interrupt: Interrupt) throws(SystemError) -> ChildEnd {
        try wait(for: process, interrupt) { $0.isOfTerminal ? nil : $0.number }
    }

    /// Waits for the end of a process. For each signal meanwhile `answer` gives the one to send to it, if any.
    private static func wait(
        for process: pid_t, _ interrupt: Interrupt, _ answer: (Interrupt.Signal) -> CInt?
    ) throws(SystemError) -> ChildEnd {
        guard let (child, epoll) = try watch(process, interrupt, answer) else { return wait(for: process) }
        while !epoll.value.wait(until: .distantFuture).contains(where: { $0.key == Interrupt.otherKey }) {
            if let signal = answer(try interrupt.readSignal()) { try child.signal(signal) }
        }
        return wait(for: process)
    }

    /// Watches a process that was started, and signals. The process is running, so while the system lacks the resources
    /// to watch it, this tries again, and answers the signals that come meanwhile.
    ///
    /// - Returns: nil when the process is gone, or has ended after such a signal.
    private static func watch(
        _ process: pid_t, _ interrupt: Interrupt, _ answer: (Interrupt.Signal) -> CInt?
    ) throws(SystemError) -> (child: LaunchedProcess, epoll: Shared<EpollSet>)? {
        var hasAnswered = false
        while true {
            do throws(SystemError) {
                guard let child = try LaunchedProcess.watching(child: process) else { return nil }
                return (child, Shared(try interrupt.epollSet(with: child.rawValue)))
            } catch {
                guard error.isTemporary else {
                    sysKillAndReap(process)
                    throw error
                }
            }
            let hasCome = (try? interrupt.wait(until: .after(Tuning.timeUntilRetry))) ?? false
            // A child that was not waited for keeps its number.
            if hasCome || hasAnswered, hasEnded(process) { return nil }
            if hasCome, let read = try? interrupt.readSignal(), let signal = answer(read) { kill(process, signal) }
            hasAnswered = hasAnswered || hasCome
        }
    }

    /// Whether a child has ended, which leaves it to be waited for.
    static func hasEnded(_ process: pid_t) -> Bool {
        var information = siginfo_t()
        let result = waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT)
        return result != 0 || information.si_signo != 0
    }

    /// Runs it with bytes on its standard input.
    ///
    /// - Returns: what it wrote to its standard output, and how it ended.
    func run(input: [UInt8], environment: [String: String?]) throws(SystemError) -> (output: [UInt8], end: ChildEnd) {
        // A child inherits the descriptors meant for it, and no others.
        let forward = try makePipe()
        let theirInput = FileDescriptor(owning: forward.reading)
        var ourOutput: SharedDescriptor? = SharedDescriptor(owning: forward.writing)
        let back = try makePipe()
        let ourInput = FileDescriptor(owning: back.reading)
        let theirOutput = FileDescriptor(owning: back.writing)
        let process = try start(environment: environment, descriptors: [theirInput.raw, theirOutput.raw, nil])
        _ = consume theirInput
        _ = consume theirOutput
        let reading = ourInput.raw
        let output = Result { () throws(SystemError) in
            try Self.exchange(input, into: &ourOutput, from: reading)
        }
        _ = consume ourInput
        let end = Self.wait(for: process)
        return (try output.get(), end)
    }

    /// Writes and reads at the same time, so that the two sides cannot deadlock.
    private static func exchange(
        _ input: [UInt8], into writer: inout SharedDescriptor?, from reading: CInt
    ) throws(SystemError) -> [UInt8] {
        var (rest, output) = (input[...], [UInt8]())
        for number in [writer?.rawValue ?? -1, reading] { _ = fcntl(number, F_SETFL, O_NONBLOCK) }
        while true {
            if rest.isEmpty { writer = nil }
            var polls = [pollfd(fd: reading, events: Int16(POLLIN), revents: 0)]
            if let number = writer?.rawValue { polls.append(pollfd(fd: number, events: Int16(POLLOUT), revents: 0)) }
            if poll(&polls, nfds_t(polls.count), -1) == -1, errno != EINTR { throw SystemError(errno) }
            if let number = writer?.rawValue, polls.last?.revents != 0 {
                // A program that stops reading has enough.
                rest = rest.dropFirst((try? sysWrite(number, rest.prefix(Tuning.pieceSize))) ?? 0)
                if polls[1].revents & Int16(POLLERR) != 0 { rest = [] }
            }
            if polls[0].revents != 0, let piece = try sysRead(reading, capacity: Tuning.pieceSize) {
                if piece.isEmpty { return output }
                output += piece
            }
        }
    }
}

extension ChildEnd {
    /// The status as a shell reports it: 128 and the signal's number for a process that was killed.
    var shellStatus: Int32 {
        switch self {
        case .exited(let status): status
        case .signalled(let number): 128 + number
        case .unknown: ExitStatus.failure.rawValue
        }
    }

    /// What the process did, as the end of a sentence.
    var sentence: String {
        switch self {
        case .exited(let status): "ended with status \(status)"
        case .signalled(let number): "was ended by signal \(number)"
        case .unknown: "ended"
        }
    }
}

extension SystemError {
    /// Whether the same call may succeed later, when other processes use less.
    var isTemporary: Bool { isShortage || code == EAGAIN }
}

extension PortError {
    /// Whether the same call may succeed later, when there are descriptors or memory again.
    var isShortage: Bool { code == .descriptorLimit || systemError?.isShortage == true }
}
