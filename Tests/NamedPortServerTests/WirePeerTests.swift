// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// `wire-peer` is written in C from Docs/WireFormat.md alone, which shows that the page is sufficient.
@Suite("A foreign implementation", .leakCheck(warmingUp: makeSpareDescriptor)) struct WirePeerTests {
    @Test("a client in C gets from a port all that the page promises")
    func client() async throws {
        try await withFixture { fixture in
            try withForeignService(at: fixture) { port in
                let peer = try wirePeer(["client", fixture.directory, "service"])
                let outcome = try peer.waitForExit()
                #expect(outcome.end == .exited(0), "\(outcome.errors)")
                let expected = [
                    "the name leads to a port", "a request is answered",
                    "a large request is answered with a large reply", "a message that was given up is nothing",
                    "a message between the pieces of another is answered before that is whole",
                    "the other is answered when it is whole", "a message is confirmed", "a message is confirmed",
                    "a message is confirmed",
                    "a descriptor arrives and is written to", "a descriptor is closed once it is not needed",
                    "a reply brings a descriptor", "that descriptor can be read",
                    "a message of two packets passes 300 descriptors", "a dropped reply is reported",
                    "an error is reported with its number and text", "a request that is abandoned ends",
                    "a probe of a server that runs is not answered",
                    "a port that checked in gets a message", "the end that came with a right is closed with it",
                    "a name without an owner leads nowhere",
                ]
                #expect(outcome.output == expected.map { $0 + "\n" }.joined())
            }
        }
    }

    @Test("a server in C is a port like any other to its clients")
    func server() async throws {
        try await withFixture { fixture in
            let peer = try wirePeer(["serve", fixture.directory, "foreign"])
            try peer.expect("ready")
            let registration = try fixture.names.list().first { $0.name == "foreign" }
            #expect(registration?.owner == peer.processID)
            #expect(failure { try fixture.names.register(MachPort(), name: "foreign") }?.owner == peer.processID)
            try talk(to: peer, at: fixture)
            let outcome = try peer.waitForExit()
            #expect(outcome.end == .exited(0), "\(outcome.errors)")
            #expect(failure { _ = try fixture.names.lookUp("foreign") }?.code == .nameUnknown)
        }
    }

    private func talk(to peer: ChildProcess, at fixture: NameFixture) throws {
        let port = try RemoteMessagePort(name: "foreign", nameServer: fixture.names)
        #expect(try port.ask(1, "stressed") == "desserts")
        let large = (0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let reply = try port.request(MachMessage(id: 1, bytes: large), sendLimit: longTimeout, replyLimit: longTimeout)
        #expect(reply.bytes.reversed().elementsEqual(large))
        #expect(failure { _ = try port.ask(2) }?.code == .replyDropped)
        let error = failure { _ = try port.ask(3) }
        #expect(error?.code == .remoteError)
        #expect(error?.remoteCode == 5)
        #expect(error?.remoteText == "full")
        try descriptorAndRight(port, fixture)
        try port.send(MachMessage(id: 77))
        try peer.expect("message 77")
        for confirmation in SendConfirmation.allCases {
            try port.send(
                MachMessage(id: 78), confirming: confirmation, sendLimit: longTimeout, confirmationLimit: longTimeout)
            try peer.expect("message 78")
        }
    }

    /// The server writes to a descriptor of this process, and sends to a port of this process.
    private func descriptorAndRight(_ port: RemoteMessagePort, _ fixture: NameFixture) throws {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let (reading, writing) = (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
        _ = try port.request(
            MachMessage(id: 5, components: [.descriptor(writing)]), sendLimit: longTimeout, replyLimit: longTimeout)
        var text = [UInt8](repeating: 0, count: 8)
        #expect(read(reading.rawValue, &text, text.count) == 5)
        let own = MachPort()
        try fixture.names.register(own, name: "own")
        try port.send(MachMessage(id: 7, components: [.right(own.makeSendRight())]))
        let message = try #require(try own.receive(within: longTimeout))
        #expect(message.id == 102 && message.text == "hello")
        own.invalidate()
    }

    @Test("each breach of the format by a client in C is refused, and ends its own connection only")
    func breaches() async throws {
        try await withFixture { fixture in
            try withForeignService(at: fixture) { port in
                let peer = try wirePeer(["hostile", fixture.directory, "service", "breaches"])
                let outcome = try peer.waitForExit()
                #expect(outcome.end == .exited(0), "\(outcome.errors)")
                #expect(outcome.output.split(separator: "\n").count == 19)
                #expect(try port.ask(1, "stressed") == "desserts")
            }
        }
    }

    @Test(
        "a client that falls silent, floods, or takes all connections keeps no other out",
        arguments: ["half", "connect", "flood", "probe"])
    func greed(act: String) async throws {
        try await withFixture { fixture in
            try withForeignService(at: fixture) { port in
                let peer = try wirePeer(["hostile", fixture.directory, "service", act])
                let first = try #require(try peer.nextLine())
                #expect(["silent", "flooding", "probing"].contains(first) || first.hasPrefix("connections "))
                for _ in 0..<100 { #expect(try port.ask(1, "stressed") == "desserts") }
                let outcome = try peer.waitForExit()
                #expect(outcome.end == .exited(0), "\(outcome.errors)")
                #expect(try port.ask(1, "stressed") == "desserts")
            }
        }
    }

    @Test("a process that floods all its connections at once keeps no other process out")
    func horde() async throws {
        try await withFixture { fixture in
            try withForeignService(at: fixture) { port in
                let horde = try wirePeer(["hostile", fixture.directory, "service", "horde"])
                try horde.expect("sending")
                let client = try wirePeer(["client", fixture.directory, "service"]).waitForExit()
                #expect(client.end == .exited(0), "\(client.errors)")
                let outcome = try horde.waitForExit()
                #expect(outcome.end == .exited(0), "\(outcome.errors)")
            }
        }
    }
}

private func wirePeer(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(builtProduct("wire-peer"), arguments)
}

/// Runs `body` with a port named "service", served on a thread of its own, and a remote port that reaches it in memory.
private func withForeignService(at fixture: NameFixture, _ body: (RemoteMessagePort) throws -> Void) throws {
    try withLoopThread { loop in
        let port = MachPort { _, message in serve(message) }
        defer { port.invalidate() }
        try fixture.names.register(port, name: "service")
        try port.schedule(on: loop)
        try body(try RemoteMessagePort(name: "service", nameServer: fixture.names))
    }
}

/// Handles the requests of `wire-peer client`.
private func serve(_ message: MachMessage) {
    switch message.id {
    case 1: try? message.reply(MachMessage(id: 1, bytes: message.bytes.reversed()))
    case 3: try? message.replyError(5, "full")
    case 5:
        guard let descriptor = message.descriptors.first else { return }
        try? sysWriteAll(descriptor.rawValue, Array("hello".utf8))
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let (reading, writing) = (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
        try? sysWriteAll(writing.rawValue, Array("there".utf8))
        try? message.reply(MachMessage(id: 5, components: [.descriptor(reading)]))
    case 8: try? message.reply(message)
    case 100: try? message.replyPort?.send(MachMessage(id: 102, text: "hello"), within: longTimeout)
    default: break  // releases the reply right
    }
}
