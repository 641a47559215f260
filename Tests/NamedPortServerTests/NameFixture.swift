// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A test's directory of names.
struct NameFixture: Sendable {
    /// The directory that contains the directory of names.
    let scratch: ScratchDirectory
    /// The directory of names and sockets; in a child process also that of `PortNameServer.shared`.
    let directory: String
    let names: PortNameServer

    init(_ scratch: ScratchDirectory, directory: String? = nil) throws {
        self.scratch = scratch
        self.directory = directory ?? scratch.path("swift-ports")
        names = try PortNameServer(directory: self.directory)
    }

    /// The path of a name's file.
    func file(_ name: String) throws -> String { "\(directory)/names/\(try PortName(name).fileName)" }

    /// The path of the socket behind a name.
    func socket(_ name: String) throws -> String {
        let contents = Array(try Data(contentsOf: URL(fileURLWithPath: file(name))))
        return try #require(NameRecord(contents: contents)).socketPath
    }
}

/// Runs a test on a thread of its own, with a directory of names, in which it leaves no name and no socket: all ports
/// end properly, unless processes are killed, which leave files (`anything`).
func withFixture(
    leaving leftovers: ScratchDirectory.Leftovers = .none, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (NameFixture) throws -> Void
) async throws {
    try await onNewThread(sourceLocation: sourceLocation) {
        try withScratchDirectory(leaving: .anything, sourceLocation: sourceLocation) { scratch in
            try body(NameFixture(scratch))
            guard case .none = leftovers else { return }
            waitForIOThread()  // what it does retains the directory
            let found = ["names", "sockets"].flatMap { part in
                (try? sysList(scratch.path("swift-ports/\(part)")).map { "\(part)/\($0)" }) ?? []
            }
            #expect(found == [], sourceLocation: sourceLocation)
        }
    }
}

/// Makes what a process retains once it has had a port with an address: the spare descriptor, and the thread that sends
/// replies for which there was no room.
@Sendable func makeSpareDescriptor() throws {
    try withScratchDirectory(leaving: .anything) { scratch in
        let port = MachPort()
        try NameFixture(scratch).names.register(port, name: "warm")
        port.invalidate()
    }
    try warmUpIOThread()
}

/// Runs `body` beside a thread whose run loop runs meanwhile.
func withLoopThread<Result>(_ body: (ThreadRunLoop) throws -> Result) throws -> Result {
    let loops = Recorder<ThreadRunLoop>("a loop")
    let thread = runOnThread(name: "loop") {
        let loop = ThreadRunLoop.current
        loop.add(RunLoopSource {})
        loops.append(loop)
        loop.run()
    }
    let loop = try #require(loops.waitUntilCount(1).first)
    let result = Swift.Result { try body(loop) }
    loop.stop()
    try thread.join()
    return try result.get()
}
