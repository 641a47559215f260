// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Servers killed at any point", .leakCheck(warmingUp: makeSpareDescriptor))
struct KilledServerTests {
    @Test(
        "a server killed among requests: the acknowledged ones were handled once, the others end, the name is free, 100 times",
        .seeded, arguments: ["never", "always"])
    func killedAnywhere(rings: String) async throws {
        let use = try #require(RingPolicy(rawValue: rings))
        try await withFixture(leaving: .anything) { fixture in
            var generator = Seed.generator()
            for round in 0..<100 {
                // The first few are sent before the rings exist.
                let replies = Int.random(in: 0...(use == .always ? 60 : 12), using: &generator)
                let iterations = Int.random(in: 0...2000, using: &generator)
                let before = openDescriptors()
                let log = HandledLog("log.\(round)", at: fixture)
                let attempts = try Self.attempts(killing: log, at: fixture, after: replies, iterations, use)
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown, "round \(round)")
                try Self.compare(attempts, log, "round \(round), \(replies) replies and \(iterations) iterations")
                #expect(openDescriptors() == before, "round \(round)")
            }
            // The last server's name file is replaced, and no other is added.
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            #expect(try sysList(fixture.directory + "/names").count == 1)
            port.invalidate()
            #expect(try sysList(fixture.directory + "/names") == [])
            // Each process removes the files of dead ones: only the last one's may be there.
            #expect(try sysList(fixture.directory + "/sockets").count <= 3)
        }
    }

    /// Two threads send requests until the server is killed.
    private static func attempts(
        killing log: HandledLog, at fixture: NameFixture, after replies: Int, _ iterations: Int, _ use: RingPolicy
    ) throws -> [Attempt] {
        try withLoggingServer(log, at: fixture, endsAs: .signalled(SIGKILL)) { server in
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            try #require(port.right.destination as? RemotePort).reached().useRings(use)
            let answered = Counter("the replies")
            let clients = (0..<2).map { client in
                runOnThread { Self.requests(of: client, to: port, counting: answered) }
            }
            answered.waitUntilCount(replies)
            spin(iterations)
            server.kill()
            return try clients.flatMap { try $0.join() }
        }
    }

    /// Sends requests until one fails, and one more.
    private static func requests(of client: Int, to port: RemoteMessagePort, counting answered: Counter) -> [Attempt] {
        var attempts: [Attempt] = []
        for number in 0..<1_000_000 {
            let text = "\(client).\(number)"
            let error = failure {
                let reply = try port.ask(Act.reverse, text)
                if reply != text { Issue.record("\(text) was answered with \(reply)") }
            }
            attempts.append(Attempt(number: text, error: error))
            if attempts.dropLast().last?.error != nil { break }
            if error == nil { answered.increment() }
        }
        return attempts
    }

    private static func compare(_ attempts: [Attempt], _ log: HandledLog, _ comment: Comment) throws {
        let handled = try log.handled()
        for attempt in attempts {
            attempt.expect(in: handled, comment)
            switch attempt.error?.code {
            case nil: break
            case .peerDied: #expect(attempt.error?.delivery == .unknown, comment)
            case .deadName: #expect(attempt.error?.delivery == .notSent, comment)
            default: Issue.record("\(comment): \(attempt)")
            }
        }
        #expect(attempts.filter { $0.error != nil }.count == 4, comment)
        #expect(Set(handled.keys).isSubset(of: attempts.map(\.number)), comment)
    }
}
