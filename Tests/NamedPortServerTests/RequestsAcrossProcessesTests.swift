// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Requests between processes", .leakCheck(warmingUp: makeSpareDescriptor))
struct RequestsAcrossProcessesTests {
    @Test("a request gets its reply, and each side knows the identity of the other")
    func requestAndReply() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                #expect(try port.ask(Act.reverse, "abc") == "cba")
                let reply = try port.request(MachMessage(id: Act.process))
                #expect(reply.id == Act.process)
                #expect(reply.text == "\(server.processID)")
                #expect(reply.sender.processID == server.processID)
                #expect(reply.sender.userID == sysUserID())
                #expect(!reply.expectsReply)
            }
        }
    }

    @Test("the same name gives the same right each time, with one connection")
    func sameRight() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let first = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                expectNoNewDescriptors {
                    let second = try? RemoteMessagePort(name: "server", nameServer: fixture.names)
                    #expect(second == first)
                }
            }
        }
    }

    @Test("a handler that returns nothing replies an empty message; an empty request arrives as one")
    func emptyReplyAndRequest() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                let reply = try port.request(MachMessage(id: Act.silence))
                #expect(reply.id == Act.silence)
                #expect(reply.bytes == [])
                #expect(try port.request(MachMessage(id: Act.reverse)).bytes == [])
                #expect(try port.request(MachMessage(id: Act.reverse, bytes: [])).bytes == [])
            }
        }
    }

    @Test(
        "bodies of every size come and go whole",
        arguments: [1, 65_487, 65_488, 65_489, 131_000, 1 << 20, rounds(8 << 20)])
    func bodies(size: Int) async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                    for index in 0..<size {
                        buffer[index] = UInt8(truncatingIfNeeded: index ^ index >> 8 ^ index >> 16)
                    }
                    count = size
                }
                let reply = try port.request(
                    MachMessage(id: Act.reverse, bytes: bytes), sendLimit: longTimeout, replyLimit: longTimeout)
                #expect(reply.bytes.count == size)
                #expect(reply.bytes.reversed().elementsEqual(bytes))
            }
        }
    }

    @Test("one-way messages arrive in order, also when the sender has exited before the first is read")
    func sentBeforeExit() async throws {
        try await withFixture { fixture in
            let port = MachPort(queueLimit: 100)  // the sender waits for room beyond
            try fixture.names.register(port, name: "name")
            let sender = try withPeer(["send", fixture.directory, "name", "100"], at: fixture) { sender in
                try sender.waitForExit()
                return sender.processID
            }
            for number in 0..<100 {
                let message = try #require(try port.receive(within: longTimeout))
                #expect(message.text == "\(number)")
                #expect(message.sender.processID == sender)
                #expect(!message.expectsReply)
            }
            #expect(try port.tryReceive() == nil)
            port.invalidate()
        }
    }

    @Test("a slow receiver keeps its sender waiting and loses nothing")
    func moreThanFits() async throws {
        try await withFixture { fixture in
            let port = MachPort(queueLimit: 2)
            try fixture.names.register(port, name: "name")
            try withPeer(["send", fixture.directory, "name", "2000"], at: fixture) { _ in
                for number in 0..<2000 {
                    let message = try #require(try port.receive(within: longTimeout))
                    guard message.text == "\(number)" else { return #expect(message.text == "\(number)") }
                }
            }
            port.invalidate()
        }
    }

    @Test("a reply right that is released unused is reported at once")
    func dropped() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                #expect(failure { _ = try port.ask(Act.drop) }?.code == .replyDropped)
                #expect(try port.ask(Act.reverse, "on") == "no")
            }
        }
    }

    @Test("a late reply is refused, and never given to a later request")
    func lateReply() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                for round in 0..<3 {
                    let error = failure {
                        _ = try port.request(MachMessage(id: Act.keep), replyLimit: .milliseconds(10))
                    }
                    #expect(error?.code == .replyTimedOut, "round \(round)")
                    try server.expect("retained")
                    #expect(try port.ask(Act.answer) == "1", "round \(round)")
                    try server.expect("error deadName")
                    #expect(try port.ask(Act.reverse, "on") == "no", "round \(round)")
                }
            }
        }
    }

    @Test("a stopped server costs the reply limit, then the send limit, and goes on as if nothing had happened")
    func stoppedServer() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                server.pause()
                let error = failure {
                    _ = try port.request(MachMessage(id: Act.reverse, text: "late"), replyLimit: .milliseconds(10))
                }
                #expect(error?.code == .replyTimedOut)
                let sent = fill(port)
                expectFull(port, within: .zero)
                expectFull(port, within: .milliseconds(10))
                #expect(try !port.right.trySend(MachMessage(id: Act.note)))
                #expect(port.isValid)
                server.resume()
                #expect(try port.ask(Act.reverse, "abc") == "cba")
                try server.expect("error deadName")  // no request waited for the late one any more
                for number in 0..<sent { try server.expect("note \(number)") }
            }
        }
    }

    /// Sends numbered notes until there is no more room.
    private func fill(_ port: RemoteMessagePort) -> Int {
        var sent = 0
        while failure({ try port.send(MachMessage(id: Act.note, text: "\(sent)"), sendLimit: .zero) }) == nil {
            sent += 1
        }
        return sent
    }

    private func expectFull(_ port: RemoteMessagePort, within limit: Duration) {
        let sent = failure { try port.send(MachMessage(id: Act.note), sendLimit: limit) }
        #expect(sent?.code == .sendTimedOut)
        let asked = failure { _ = try port.request(MachMessage(id: Act.reverse), sendLimit: limit) }
        #expect(asked?.code == .sendTimedOut)
    }

    @Test("a large message that a stopped server cuts off is aborted, and the next ones arrive")
    func cutOff() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                #expect(try port.ask(Act.reverse, "abc") == "cba")
                server.pause()
                let large = MachMessage(id: Act.note, bytes: [UInt8](repeating: 65, count: 4 << 20))
                #expect(failure { try port.send(large, sendLimit: .milliseconds(10)) }?.code == .sendTimedOut)
                #expect(failure { try port.send(large, sendLimit: .zero) }?.code == .sendTimedOut)
                server.resume()
                try port.send(MachMessage(id: Act.note, text: "small"), sendLimit: longTimeout)
                try server.expect("note small")
                #expect(try port.ask(Act.reverse, "abc") == "cba")
            }
        }
    }

    @Test("a server's handler asks the waiting client's own port, in the default mode")
    func reentrancy() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let loop = ThreadRunLoop.current
                let asked = Recorder<Bool>()
                let own = try LocalMessagePort(name: "client", nameServer: fixture.names) { _, message in
                    asked.append(loop.isCurrent)
                    return message.bytes.reversed()
                }
                try own.schedule()
                let port = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                let request = MachMessage(id: Act.callBack, text: "abc", replyPort: own.port.makeSendRight())
                let reply = try port.request(request, sendLimit: longTimeout, replyLimit: longTimeout, mode: .default)
                #expect(reply.text == "abc")
                #expect(asked.elements == [true])
                own.invalidate()
            }
        }
    }

    @Test("50 connections and eight processes at one server: each gets its own replies")
    func manyClients() async throws {
        try await withFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                message.bytes.reversed()
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                let clients = (0..<8).map { number in
                    runOnThread {
                        try withPeer(["ask", fixture.directory, "name", "1", "\(number)-"], at: fixture) { client in
                            try client.expect("reply -\(number)")
                        }
                    }
                }
                try withPeer(["connect-many", fixture.directory, "name", "50"], at: fixture) {
                    try $0.expect("replies 50")
                }
                for client in clients { try client.join() }
                local.invalidate()
            }
        }
    }
}
