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
@Suite("Clients when the system refuses", .census(warmingUp: makeSpareDescriptor))
struct FaultyClientTests {
    @Test("a client and owner of a name, refused at each call in turn: nothing is lost, doubled or leaked, 100 times")
    func client() async throws {
        try await withPlace { place in
            let warm = MachPort()
            try place.names.register(warm, name: "warm")
            let ledger = Ledger("ledger", at: place)
            try withLedgerServer(ledger, at: place) { _ in
                try onNewThread { _ = Self.run("before", at: place) }
                let calls = try onNewThread { SystemCallFaults.counting { Self.run("count", at: place) }.calls }
                let plans = FaultPlan.all(calls, atLeast: 100)
                let (descriptors, files) = (openDescriptors(), try Self.files(place))
                var left: Set<String> = []
                var (attempts, hits): ([Attempt], Int) = ([], 0)
                for (round, plan) in plans.enumerated() {
                    let (result, hit) = try onNewThread {
                        SystemCallFaults.with(plan.rules) { Self.run("\(round)", at: place) }
                    }
                    hits += hit
                    attempts += result.attempts
                    for error in result.errors { #expect(Self.expected.contains(error.code), "\(plan): \(error)") }
                    if case .fail(EINTR) = plan.fault { #expect(result.errors == [], "\(plan)") }
                    #expect(openDescriptors() == descriptors, "\(plan)")
                    #expect(try place.names.list().map(\.name) == ["name", "warm"], "\(plan)")
                    // A socket that could not be removed stays until another process sweeps it away.
                    if plan.call == .unlink { left.formUnion(try Self.files(place)[1].subtracting(files[1])) }
                    let expected = [files[0], files[1].union(left)]
                    // A file that could not be locked, or removed, stays, like a dead owner's, until its name is
                    // registered again.
                    if plan.call != .fcntl, plan.call != .unlink {
                        #expect(try Self.files(place) == expected, "\(plan)")
                    }
                    let after = try onNewThread { Self.run("\(round) after", at: place) }
                    #expect(after.errors == [], "\(plan)")
                    #expect(try Self.files(place) == expected, "\(plan)")
                    attempts += after.attempts
                }
                #expect(hits >= plans.count)
                for file in left { unlink("\(place.directory)/sockets/\(file)") }
                try Self.compare(attempts, ledger)
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
    private static func run(_ number: String, at place: Place) -> (attempts: [Attempt], errors: [PortError]) {
        var (attempts, errors): ([Attempt], [PortError?]) = ([], [])
        let own = MachPort()
        errors.append(failure { try place.names.register(own, name: "own") })
        var remote: RemoteMessagePort?
        errors.append(failure { remote = try RemoteMessagePort(name: "name", nameServer: place.names) })
        if let remote {
            let asked = failure {
                let reply = try remote.ask(Act.reverse, "request \(number)")
                #expect(reply == "request \(number)")
            }
            let sent = failure {
                try remote.send(MachMessage(id: Act.note, text: "note \(number)"), sendLimit: patience)
            }
            attempts.append(Attempt(number: "request \(number)", error: asked))
            attempts.append(Attempt(number: "note \(number)", error: sent))
            errors += [asked, sent]
        }
        place.names.unregister("own")
        own.invalidate()
        return (attempts, errors.compactMap(\.self))
    }

    private static func files(_ place: Place) throws -> [Set<String>] {
        try ["names", "sockets"].map { Set(try sysList("\(place.directory)/\($0)")) }
    }

    private static func compare(_ attempts: [Attempt], _ ledger: Ledger) throws {
        // The server handles notes at some point; nothing waits for them.
        let sent = attempts.filter { $0.error == nil }.map(\.number)
        try expectSoon("the notes") {
            let handled = try ledger.handled()
            return sent.allSatisfy { handled[$0] != nil }
        }
        let handled = try ledger.handled()
        for attempt in attempts { attempt.expect(in: handled, "at the end") }
    }
}

#endif
