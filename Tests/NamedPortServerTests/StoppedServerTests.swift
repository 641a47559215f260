// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Servers stopped and continued", .leakCheck(warmingUp: makeSpareDescriptor))
struct StoppedServerTests {
    @Test("a server stopped before a request: the reply limit ends it, and the next one gets its own reply, 100 times")
    func shortLimit() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let log = HandledLog("log", at: fixture)
            try withLoggingServer(log, at: fixture) { server in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(try port.ask(Act.reverse, "first") == "first")
                try expectNoNewDescriptorsButOfRings {
                    for round in 0..<100 {
                        server.pause()
                        let error = failure {
                            let request = MachMessage(id: Act.reverse, text: "late \(round)")
                            _ = try port.request(request, replyLimit: .milliseconds(1))
                        }
                        #expect(error?.code == .replyTimedOut && error?.delivery == .unknown, "round \(round)")
                        // Sent while the late request is still unread: the reply to that comes first.
                        let next = runOnThread { try port.ask(Act.reverse, "next \(round)") }
                        if round % 2 == 0 { spin(round * 20) }
                        server.resume()
                        let reply = try next.join()
                        #expect(reply == "next \(round)")
                    }
                }
            }
            let handled = try log.handled()
            for round in 0..<100 {
                #expect(handled["next \(round)"] == 1)
                #expect(handled["late \(round)"] == 1)
            }
        }
    }

    @Test("a server stopped and continued anywhere among requests answers each of them once, 100 times", .seeded)
    func longLimit() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let log = HandledLog("log", at: fixture)
            try withLoggingServer(log, at: fixture) { server in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                var generator = Seed.generator()
                #expect(try port.ask(Act.reverse, "first") == "first")
                for round in 0..<100 {
                    let iterations = Int.random(in: 0...1000, using: &generator)
                    let answered = Counter("the replies")
                    let client = runOnThread {
                        for number in 0..<8 {
                            let reply = try port.ask(Act.reverse, "\(round).\(number)")
                            #expect(reply == "\(round).\(number)")
                            answered.increment()
                        }
                    }
                    answered.waitUntilCount(Int.random(in: 0...4, using: &generator))
                    spin(iterations)
                    server.pause()
                    let whileStopped = answered.value
                    spin(iterations)
                    // One reply may have been sent before the stop.
                    #expect(answered.value <= whileStopped + 1, "round \(round)")
                    server.resume()
                    try client.join()
                }
            }
            let handled = try log.handled()
            #expect(handled.count == 801)
            #expect(handled.values.allSatisfy { $0 == 1 })
        }
    }
}
