// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// Runs `body` beside a `port-test-peer`, ends that by ending its input, and reaps it.
func withPeer<Result>(
    _ arguments: [String], at fixture: NameFixture, rings: String? = nil, wait: String? = nil,
    endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
) throws -> Result {
    try withPeer(
        arguments, in: fixture.scratch, rings: rings, wait: wait, endsAs: end, sourceLocation: sourceLocation, body)
}

/// The same, with its user's directory of names in a scratch directory.
func withPeer<Result>(
    _ arguments: [String], in scratch: ScratchDirectory, rings: String? = nil, wait: String? = nil,
    endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
) throws -> Result {
    var environment: [String: String?] = ["XDG_RUNTIME_DIR": scratch.path]
    if let rings { environment["PORT_RING"] = rings }
    if let wait { environment["PORT_WAIT"] = wait }
    let peer = try ChildProcess(builtProduct("port-test-peer"), arguments, environment: environment)
    return try peer.beside(endsAs: end, "\(arguments)", sourceLocation: sourceLocation) { try body(peer) }
}

/// Runs `body` beside a server process that has the name.
func withServer<Result>(
    _ name: String = "server", at fixture: NameFixture, endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
) throws -> Result {
    try withReadyPeer(
        ["serve", fixture.directory, name], at: fixture, endsAs: end, sourceLocation: sourceLocation, body)
}

/// Runs `body` beside a `port-test-peer` that is ready.
func withReadyPeer<Result>(
    _ arguments: [String], at fixture: NameFixture, rings: String? = nil, endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
) throws -> Result {
    try withPeer(arguments, at: fixture, rings: rings, endsAs: end, sourceLocation: sourceLocation) { peer in
        try peer.expect("ready", sourceLocation: sourceLocation)
        return try body(peer)
    }
}

extension ChildProcess {
    /// Waits for the next line and expects this one.
    func expect(_ line: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let next = try nextLine(sourceLocation: sourceLocation)
        try #require(next == line, sourceLocation: sourceLocation)
    }

    /// Waits until a `port-test-peer` that holds names is ready, and makes it register this one.
    func take(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try expect("ready", sourceLocation: sourceLocation)
        try write("take \(name)\n")
        try expect("taken", sourceLocation: sourceLocation)
    }

    /// Whether it has mapped the memory of a ring.
    func hasRings() throws -> Bool {
        let maps = try sysOpen("/proc/\(processID)/maps", .reading)
        return String(decoding: try sysReadAll(maps.raw), as: UTF8.self).contains("/memfd:port-ring")
    }

    /// Kills the child and waits for its end.
    func killAndReap() throws {
        kill()
        try waitForExit()
    }

    /// Stops the child and waits until it is stopped.
    func pause() {
        kill(SIGSTOP)
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WSTOPPED | WNOWAIT) == -1 && errno == EINTR {}
    }

    /// Continues a stopped child.
    func resume() {
        kill(SIGCONT)
    }
}

extension RemoteMessagePort {
    /// Sends a request with a text and returns the reply's; with long limits.
    func ask(_ act: Int32, _ text: String = "", mode: RunLoopMode = .portReply) throws(PortError) -> String {
        try request(MachMessage(id: act, text: text), sendLimit: longTimeout, replyLimit: longTimeout, mode: mode).text
    }
}
