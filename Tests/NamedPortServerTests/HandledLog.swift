// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// What the command `log` of `port-test-peer` wrote: how often each number was handled.
struct HandledLog {
    let path: String

    init(_ name: String, at fixture: NameFixture) {
        path = fixture.scratch.path(name)
    }

    /// How often each number was handled so far.
    func handled() throws -> [String: Int] {
        let file = try sysOpen(path, .reading)
        let bytes = try sysReadAll(file.raw)
        var counts: [String: Int] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            counts[String(line), default: 0] += 1
        }
        return counts
    }
}

/// Runs `body` beside a server process that records in `log` what it handles.
func withLoggingServer<Result>(
    _ log: HandledLog, at fixture: NameFixture, endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
) throws -> Result {
    try withReadyPeer(
        ["log", fixture.directory, "name", log.path], at: fixture, endsAs: end, sourceLocation: sourceLocation, body)
}

/// A message with a number, and its result.
struct Attempt: Sendable {
    let number: String
    /// nil: acknowledged.
    let error: PortError?

    /// Expects that the log agrees: an acknowledged message was handled once, one that was not sent never.
    func expect(in handled: [String: Int], _ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
        let times = handled[number, default: 0]
        switch error?.delivery {
        case nil, .read: #expect(times == 1, "\(comment): \(self)", sourceLocation: sourceLocation)
        case .notSent, .unread: #expect(times == 0, "\(comment): \(self)", sourceLocation: sourceLocation)
        case .unknown: #expect(times <= 1, "\(comment): \(self)", sourceLocation: sourceLocation)
        }
    }
}

/// Lets some time pass that no clock measures, so that the next step meets another thread or process at a random point.
func spin(_ iterations: Int) {
    for _ in 0..<iterations { _ = getppid() }
}

/// Waits for a condition that another thread or process makes true at some point.
func expectSoon(
    _ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool
) rethrows {
    let deadline = Watchdog.deadline
    while try !condition(), .now < deadline { sched_yield() }
    #expect(try condition(), comment, sourceLocation: sourceLocation)
}
