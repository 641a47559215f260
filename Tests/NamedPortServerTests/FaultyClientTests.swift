// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// The system calls of one process for a name and a request: refused one after the other.
@Suite("Clients when the system refuses", .leakCheck(warmingUp: makeSpareDescriptor))
struct FaultyClientTests {
    @Test("a client and owner of a name, refused at each call in turn: nothing is lost, doubled or leaked, 100 times")
    func client() async throws {
        try await withFixture { fixture in
            let warm = MachPort()
            try fixture.names.register(warm, name: "warm")
            let log = HandledLog("log", at: fixture)
            try withLoggingServer(log, at: fixture) { _ in
                try onNewThread { _ = Self.run("before", at: fixture) }
                let calls = try onNewThread { SystemCallFaults.counting { Self.run("count", at: fixture) }.calls }
                let plans = FaultPlan.all(calls, atLeast: 100)
                let (descriptors, files) = (openDescriptors(), try Self.files(fixture))
                var left: Set<String> = []
                var (attempts, hits): ([Attempt], Int) = ([], 0)
                for (round, plan) in plans.enumerated() {
                    let (result, hit) = try onNewThread {
                        SystemCallFaults.with(plan.rules) { Self.run("\(round)", at: fixture) }
                    }
                    hits += hit
                    attempts += result.attempts
                    for error in result.errors { #expect(Self.expected.contains(error.code), "\(plan): \(error)") }
                    if case .fail(EINTR) = plan.fault { #expect(result.errors == [], "\(plan)") }
                    #expect(openDescriptors() == descriptors, "\(plan)")
                    #expect(try fixture.names.list().map(\.name) == ["name", "warm"], "\(plan)")
                    // A socket that could not be removed stays until another process sweeps it away.
                    if plan.call == .unlink { left.formUnion(try Self.files(fixture)[1].subtracting(files[1])) }
                    let expected = [files[0], files[1].union(left)]
                    // A file that could not be locked, or removed, stays, like a dead owner's, until its name is
                    // registered again.
                    if plan.call != .fcntl, plan.call != .unlink {
                        #expect(try Self.files(fixture) == expected, "\(plan)")
                    }
                    let after = try onNewThread { Self.run("\(round) after", at: fixture) }
                    #expect(after.errors == [], "\(plan)")
                    #expect(try Self.files(fixture) == expected, "\(plan)")
                    attempts += after.attempts
                }
                #expect(hits >= plans.count)
                for file in left { unlink("\(fixture.directory)/sockets/\(file)") }
                try Self.compare(attempts, log)
            }
            warm.invalidate()
        }
    }

    /// The possible errors of a call that was refused.
    private static let expected: Set<PortError.Code> = [
        .descriptorLimit, .systemCallFailed, .sendTimedOut, .peerDied, .deadName,
        .nameUnknown,  // a file that cannot be opened holds no name
    ]

    /// Registers a name, looks another up, sends a request and a note, and frees the name.
    private static func run(_ number: String, at fixture: NameFixture) -> (attempts: [Attempt], errors: [PortError]) {
        var (attempts, errors): ([Attempt], [PortError?]) = ([], [])
        let own = MachPort()
        errors.append(failure { try fixture.names.register(own, name: "own") })
        var remote: RemoteMessagePort?
        errors.append(failure { remote = try RemoteMessagePort(name: "name", nameServer: fixture.names) })
        if let remote {
            let asked = failure {
                let reply = try remote.ask(Act.reverse, "request \(number)")
                #expect(reply == "request \(number)")
            }
            let sent = failure {
                try remote.send(MachMessage(id: Act.note, text: "note \(number)"), sendLimit: longTimeout)
            }
            attempts.append(Attempt(number: "request \(number)", error: asked))
            attempts.append(Attempt(number: "note \(number)", error: sent))
            errors += [asked, sent]
        }
        fixture.names.unregister("own")
        own.invalidate()
        return (attempts, errors.compactMap(\.self))
    }

    private static func files(_ fixture: NameFixture) throws -> [Set<String>] {
        try ["names", "sockets"].map { Set(try sysList("\(fixture.directory)/\($0)")) }
    }

    private static func compare(_ attempts: [Attempt], _ log: HandledLog) throws {
        // The server handles notes at some point; nothing waits for them.
        let sent = attempts.filter { $0.error == nil }.map(\.number)
        try expectSoon("the notes") {
            let handled = try log.handled()
            return sent.allSatisfy { handled[$0] != nil }
        }
        let handled = try log.handled()
        for attempt in attempts { attempt.expect(in: handled, "at the end") }
    }
}

#endif
