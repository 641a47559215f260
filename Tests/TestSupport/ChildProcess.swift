// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Child processes of tests, mostly the example programs. Two threads read the child's output, so that it never blocks
// on a full pipe, and one waits for its end. The child is reaped under the lock that `kill` acquires, so no signal ever
// goes to another process that got its number.

package import Foundation
import PortSystem
import Synchronization
package import Testing

/// A running or ended child process. A test waits for each that it starts; the leak check reports forgotten ones.
package final class ChildProcess: Sendable {
    /// The child's process id.
    package let processID: pid_t  // immutable
    let name: String  // immutable
    private let state = Mutex(State())
    let lines = OutputLines()  // guards itself
    private let output: TestThread<[UInt8]>  // guards itself
    private let errors: TestThread<[UInt8]>  // guards itself
    private let waiter: Mutex<TestThread<Void>?>  // set once, by init
    private let ended = ThreadEvent()  // guards itself

    private struct State {
        var input: SharedDescriptor?
        var end: ProcessEnd?
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: its path.
    ///   - arguments: its arguments, without the program's name.
    ///   - environment: variables to set beside those of this process; nil removes one.
    ///   - workingDirectory: its working directory; this process's own when nil.
    ///   - descriptors: become 3 and so on in the child, besides standard input, output and error.
    /// - Throws: ``SystemError`` when the program cannot be started.
    package init(
        _ program: String, _ arguments: [String] = [], environment: [String: String?] = [:],
        in workingDirectory: String? = nil, handing descriptors: [CInt] = []
    ) throws {
        name = program.split(separator: "/").last.map(String.init) ?? program
        let pipes = [try TestPipe(), try TestPipe(), try TestPipe()]
        processID = try spawn(
            program, arguments, environment, in: workingDirectory,
            [pipes[0].reading.rawValue, pipes[1].writing.rawValue, pipes[2].writing.rawValue] + descriptors)
        output = readerThread(name, pipes[1].reading, into: lines)
        errors = readerThread(name, pipes[2].reading)
        waiter = Mutex(nil)
        let input = pipes[0].writing
        state.withLock { $0.input = input }
        let thread = runOnThread(name: "wait-\(name)") { [self] in
            var information = siginfo_t()
            while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) == -1 && errno == EINTR {}
            state.withLock { state in
                var status: CInt = 0
                waitpid(processID, &status, 0)
                state.end = ProcessEnd(waitStatus: status)
            }
            ended.set()
        }
        waiter.withLock { $0 = thread }
    }

    /// Whether the child has not ended yet.
    package var isRunning: Bool { state.withLock { $0.end == nil } }

    /// Writes to the child's standard input. Blocks while its pipe is full.
    ///
    /// - Throws: `EPIPE` when the child has stopped reading.
    package func write(_ text: String) throws {
        guard let input = state.withLock({ $0.input }) else { throw SystemError(EPIPE) }
        // The signal that comes with EPIPE goes to the writing thread; blocked there, it disappears with that thread.
        try onNewThread {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            try sysWriteAll(input.rawValue, Array(text.utf8))
        }
    }

    /// Ends the child's standard input.
    package func closeInput() {
        state.withLock { $0.input = nil }
    }

    /// Sends a signal, unless the child has ended.
    package func kill(_ signal: CInt = SIGKILL) {
        state.withLock { state in
            if state.end == nil { _ = Foundation.kill(processID, signal) }
        }
    }

    /// Suspends until the child has ended by itself: its standard input stays as it is. When the watchdog ends the
    /// wait, records an issue.
    package func waitUntilEnded(sourceLocation: SourceLocation = #_sourceLocation) async {
        await offThePool { [self] in
            _ = Watchdog.wait(
                for: ended, "\(name) (process \(processID)) did not end by itself", sourceLocation: sourceLocation)
        }
    }

    /// Ends the child's standard input, blocks until it has ended and its output has been read. When the watchdog ends
    /// the wait, records an issue and kills the child.
    @discardableResult
    package func waitForExit(sourceLocation: SourceLocation = #_sourceLocation) throws -> ProcessResult {
        closeInput()
        if !Watchdog.wait(for: ended, "\(name) (process \(processID)) did not exit", sourceLocation: sourceLocation) {
            kill()
            ended.wait(until: .distantFuture)
        }
        try waiter.withLock { $0 }?.join(sourceLocation: sourceLocation)
        let output = try output.join(sourceLocation: sourceLocation)
        let errors = try errors.join(sourceLocation: sourceLocation)
        let end = state.withLock { $0.end }
        return ProcessResult(
            end: try #require(end, sourceLocation: sourceLocation), output: String(decoding: output, as: UTF8.self),
            errors: String(decoding: errors, as: UTF8.self))
    }

    /// The same, without blocking a thread of the cooperative pool.
    @discardableResult
    package func waitForExit(sourceLocation: SourceLocation = #_sourceLocation) async throws -> ProcessResult {
        try await offThePool { [self] in try waitForExit(sourceLocation: sourceLocation) }
    }

    /// Runs `body` beside the child, then ends the child's standard input, reaps the child, and expects that it ended
    /// as said: an issue otherwise has the description. Kills the child when `body` throws.
    package func beside<Result>(
        endsAs end: ProcessEnd, _ description: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> Result
    ) throws -> Result {
        let result = Swift.Result { try body() }
        if case .failure = result { kill() }
        let outcome = try waitForExit(sourceLocation: sourceLocation)
        if case .success = result {
            #expect(outcome.end == end, "\(description): \(outcome.errors)", sourceLocation: sourceLocation)
        }
        return try result.get()
    }
}

/// How a process ended.
package enum ProcessEnd: Hashable, Sendable {
    /// It exited with this status.
    case exited(CInt)
    /// This signal ended it.
    case signalled(CInt)

    init(waitStatus status: CInt) {
        let signal = status & 0x7F
        self = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    }
}

/// The result of a child process.
package struct ProcessResult: Hashable, Sendable {
    /// How it ended.
    package var end: ProcessEnd
    /// What it wrote to standard output.
    package var output: String
    /// What it wrote to standard error.
    package var errors: String

    /// Makes an expected or a seen result.
    package init(end: ProcessEnd, output: String = "", errors: String = "") {
        self.end = end
        self.output = output
        self.errors = errors
    }
}

private func readerThread(_ name: String, _ descriptor: SharedDescriptor, into lines: OutputLines? = nil)
    -> TestThread<[UInt8]>
{
    runOnThread(name: "read-\(name)") {
        defer { lines?.end() }
        var output: [UInt8] = []
        while let piece = try sysRead(descriptor.rawValue, capacity: 4096), !piece.isEmpty {
            output += piece
            lines?.append(piece)
        }
        return output
    }
}
