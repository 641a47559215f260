// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// The message that makes a worker of a test leave.
let leave = MachMessage(id: 99)

extension ScratchDirectory {
    /// The worker program of the tests, whose sockets are in this directory.
    func worker(_ arguments: String...) throws -> WorkerProgram {
        var program = WorkerProgram(try builtProduct("port-test-peer"), ["worker"] + arguments)
        program.environment["XDG_RUNTIME_DIR"] = path
        return program
    }
}

/// Runs a test on a thread of its own, which has a fresh run loop, with a directory for the workers' sockets.
func withWorkers(
    leaving leftovers: ScratchDirectory.Leftovers = .anyFiles, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (ScratchDirectory) throws -> Void
) async throws {
    try await withScratchDirectory(leaving: leftovers, sourceLocation: sourceLocation) { scratch in
        try await onNewThread(sourceLocation: sourceLocation) { try body(scratch) }
    }
}

extension SendRight {
    /// Asks for a text, with the watchdog's limit.
    func ask(_ id: Int32, _ text: String = "") throws -> String {
        try request(MachMessage(id: id, text: text), sendLimit: longTimeout, replyLimit: longTimeout).text
    }
}

/// The body of a worker thread that answers with the reverse of what it gets, and leaves with message 99.
@Sendable func reversingBody(_ parent: SendRight) throws {
    let port = MachPort { port, message in
        if message.id == 99 { return port.invalidate() }
        try? message.reply(MachMessage(id: message.id, bytes: message.bytes.reversed()))
    }
    try port.schedule()
    try parent.checkIn(port, within: longTimeout)
}

extension Trait where Self == LeakCheck {
    /// The leak check, with the threads of the library that a test must not leave behind.
    static var workers: Self {
        .leakCheck(threadNames: ["port worker"], warmingUp: makeDirectory)
    }

    /// The same, for tests with waiting threads that are not joined: for the async forms, and for ends of processes
    /// where there are no process descriptors.
    static var asyncWorkers: Self {
        .leakCheck(threadNames: ["port worker"], settles: true, warmingUp: makeDirectory)
    }
}

/// Makes what the process retains once it has had a port with an address: its directory, and the spare descriptor.
@Sendable private func makeDirectory() throws {
    ReservedDescriptor.shared.reserve()
    let port = MachPort()
    _ = try port.localPort.address()
    port.invalidate()
}
