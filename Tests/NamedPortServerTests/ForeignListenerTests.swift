// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// A name that leads to a socket of another program.
@Suite("Foreign listeners", .leakCheck(warmingUp: makeSpareDescriptor)) struct ForeignListenerTests {
    @Test("a socket of another type is an error")
    func streamSocket() async throws {
        try await withFixture(leaving: .anything) { fixture in
            for type in [SOCK_STREAM, SOCK_DGRAM] {
                let socket = SharedDescriptor(owning: Glibc.socket(AF_UNIX, CInt(type.rawValue), 0))
                let path = fixture.scratch.path("socket-\(type.rawValue)")
                try sysBind(socket.rawValue, path: path)
                if type == SOCK_STREAM { try sysListen(socket.rawValue, backlog: 8) }
                try point("name", to: path, at: fixture)
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .malformedPacket)
            }
        }
    }

    @Test("a path that is no socket is an unknown name")
    func noSocket() async throws {
        try await withFixture(leaving: .anything) { fixture in
            for path in [try fixture.scratch.write("", to: "file"), fixture.scratch.path, "/dev/null", "/"] {
                try point("name", to: path, at: fixture)
                let code = failure { _ = try fixture.names.lookUp("name") }?.code
                #expect(code == .nameUnknown || code == .malformedPacket, "\(path)")
            }
        }
    }

    @Test("a listener that never answers costs the reply limit, and no more")
    func silent() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let listener = try listen(at: fixture)
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            let error = failure {
                _ = try port.request(MachMessage(id: 1), replyLimit: .milliseconds(20))
            }
            #expect(error?.code == .replyTimedOut)
            withExtendedLifetime(listener) {}
        }
    }

    @Test("a listener whose backlog is full costs the limit of the look-up, and none with a limit of zero")
    func busy() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let listener = try listen(at: fixture, backlog: 0)
            var waiting: [SharedDescriptor] = []
            while true {
                let socket = SharedDescriptor(try sysPacketSocket())
                guard try sysConnect(socket.rawValue, path: fixture.scratch.path("foreign")) else { break }
                waiting.append(socket)
            }
            #expect(failure { _ = try fixture.names.lookUp("name", within: .zero) }?.code == .sendTimedOut)
            let before = MonotonicInstant.now
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .sendTimedOut)
            #expect(before.duration(to: .now) >= PortNameServer.lookUpLimit)
            withExtendedLifetime((listener, waiting)) {}
        }
    }

    @Test(
        "an answer of another format is an error",
        arguments: [
            Answer("another protocol's", Array("220 mail.example.com ready\r\n".utf8)), Answer("one byte", [0]),
            Answer("zeros", [UInt8](repeating: 0, count: 40)),
            Answer("much of nothing", [UInt8](repeating: 0xFF, count: 60_000)),
            Answer("another version", Array("MPRT".utf8) + [99, 1] + [UInt8](repeating: 0, count: 34)),
            Answer("a message for the port", Array("MPRT".utf8) + [2, 1] + [UInt8](repeating: 0, count: 34)),
            Answer("a continuation of nothing", Array("MPRT".utf8) + [2, 2] + [UInt8](repeating: 0, count: 35)),
        ])
    func garbage(answer: Answer) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let listener = try listen(at: fixture)
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            let foreigner = runOnThread {
                let connection = try pendingConnection(at: listener)
                _ = try sysPoll(connection.rawValue, .readable, until: Watchdog.deadline)
                _ = try sysSendPacket(connection.rawValue, head: answer.bytes, body: [], descriptors: [])
                // Hangs up only when the other side did.
                _ = try sysPoll(connection.rawValue, .peerClosed, until: Watchdog.deadline)
            }
            let error = failure {
                _ = try port.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout)
            }
            #expect(error?.code == .malformedPacket)
            #expect(!port.isValid)
            try foreigner.join()
        }
    }

    @Test("a listener that hangs up before it answers is a dead peer")
    func hangsUp() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let listener = try listen(at: fixture)
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            let foreigner = runOnThread {
                let connection = try pendingConnection(at: listener)
                // Rings may be offered before the request.
                var kind: PacketKind?
                while kind != .message {
                    _ = try sysPoll(connection.rawValue, .readable, until: Watchdog.deadline)
                    let (_, bytes) = try sysReceivePacket(connection.rawValue, limit: PacketHeader.packetLimit)
                    kind = try #require(PacketHeader(bytes)).kind
                }
            }
            let error = failure {
                _ = try port.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout)
            }
            #expect(error?.code == .peerDied)
            try foreigner.join()
        }
    }

    /// Writes a record that leads to a socket.
    private func point(_ name: String, to path: String, at fixture: NameFixture) throws {
        let record = try #require(NameRecord(owner: sysProcessID(), since: 0, socketPath: path))
        try Data(record.contents).write(to: URL(fileURLWithPath: fixture.file(name)))
        #expect(chmod(try fixture.file(name), 0o600) == 0)
    }

    /// A listening socket to which "name" leads.
    private func listen(at fixture: NameFixture, backlog: CInt = 8) throws -> SharedDescriptor {
        let listener = try packetListener(at: fixture.scratch.path("foreign"), backlog: backlog)
        try point("name", to: fixture.scratch.path("foreign"), at: fixture)
        return listener
    }
}

/// The answer of a foreign listener, with a short name for the test's report.
struct Answer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]

    init(_ testDescription: String, _ bytes: [UInt8]) {
        self.testDescription = testDescription
        self.bytes = bytes
    }
}
