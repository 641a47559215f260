// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A thousand times: `PORT_HANDOVERS=1000 swift test --filter HandOverStressTests`.
@Suite("A service that is handed over again and again", .leakCheck(warmingUp: makeSpareDescriptor))
struct HandOverStressTests {
    private static let clientCount = 8
    private static let handOverCount = sysEnvironment("PORT_HANDOVERS").flatMap { Int($0) } ?? 20

    @Test(
        "eight clients that ask and send meanwhile see no error; each message is handled once",
        arguments: ["never", "earned"])
    func load(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let seen = Recorder<Int>("messages")
            let collector = MachPort { _, message in seen.append(Int(message.text) ?? -1) }
            try fixture.names.register(collector, name: "collector")
            let worker = try ResidentThread(name: "worker")
            try collector.schedule(on: worker.loop)
            try withReadyPeer(["shuttle", fixture.directory, "a"], at: fixture, rings: rings) { first in
                try withReadyPeer(["shuttle", fixture.directory, "b"], at: fixture, rings: rings) { second in
                    try first.write("begin\n")
                    try first.expect("began")
                    let done = Gate("the end")
                    let address = try fixture.names.lookUp("service").destination.address()
                    let clients = try (0..<Self.clientCount).map { client in
                        let right = SendRight(try #require(try RightsTable.connect(to: address)))
                        return runOnThread { try Self.talk(as: client, to: right, until: done) }
                    }
                    var (owner, next) = (first, second)
                    for round in 0..<Self.handOverCount {
                        try owner.write("hand \(round % 2 == 0 ? "b" : "a")\n")
                        try owner.expect("handed")
                        try next.expect("arrived")
                        swap(&owner, &next)
                    }
                    done.open()
                    let counts = try clients.map { try $0.join() }
                    let total = counts.reduce(0, +)
                    let numbers = seen.waitUntilCount(total)
                    #expect(seen.count == total)
                    for (client, count) in counts.enumerated() {
                        let own = numbers.filter { $0 % Self.clientCount == client }.map { $0 / Self.clientCount }
                        #expect(own.sorted() == Array(0..<count), "client \(client)")
                    }
                    for shuttle in [owner, next] { shuttle.closeInput() }
                }
            }
            collector.invalidate()
            worker.end()
        }
    }

    /// Sends a message and asks, by turns.
    ///
    /// - Returns: how many messages it has sent.
    private static func talk(as client: Int, to right: SendRight, until done: Gate) throws -> Int {
        var count = 0
        // The last is a request: when it is answered, all have been handled.
        while !done.isOpen || count % 2 == 1 || count == 0 {
            let text = "\(count * clientCount + client)"
            if count % 2 == 0 {
                try right.send(MachMessage(id: 1, text: text), within: longTimeout)
            } else {
                let reply = try right.request(
                    MachMessage(id: 1, text: text), sendLimit: longTimeout, replyLimit: longTimeout)
                #expect(reply.text == text)
            }
            count += 1
        }
        return count
    }
}
