// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Requests and replies of bytes alone go through a ring as plain messages do, with the checks of all others.
@Suite("plain requests", .rings, .contract) struct PlainRequestTests {
    private static let process = Int32(900_003)

    /// A client of a port that has rings.
    private func client(of port: MachPort) throws -> (connection: SocketConnection, ring: RingPeer) {
        _ = try port.localPort.openSockets()
        let (connection, peer) = try SocketConnection.posing(as: Self.process, at: port)
        let ring = try RingPeer(peer) { port.localPort.receiveFromSockets() }
        try peer.send(PacketHeader(kind: .pathChange))
        port.localPort.receiveFromSockets()
        return (connection, ring)
    }

    private func queuedMessages(at port: MachPort) throws -> Int {
        let accounts = try #require(port.localPort.sockets).quotas
        return Int.max - accounts.withLock { $0.allowance(of: .process(Self.process)) }.messages
    }

    /// The record of one byte.
    private static let answerBytes: [UInt8] = [1, 0, 0, 0, 1, 0, 0, 0, 7]

    private func answer(under token: UInt64) -> PacketHeader {
        PacketHeader(
            kind: .message, messageID: 1, componentCount: 1, answers: token,
            totalLength: UInt64(Self.answerBytes.count))
    }

    @Test("they keep their order among messages, are charged until they are received, and are answered in the ring")
    func order() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 100)
            let (connection, ring) = try client(of: port)
            for id in Int32(1)...20 {
                let message = MachMessage(id: id, bytes: pattern(Int(id)))
                try ring.write(message, asks: id % 3 == 0 ? UInt64(id) : 0)
            }
            connection.receive(into: connection.sink, limit: 2)
            #expect(connection.receiver.state.withLock { $0.channel.peekPlain() }?.messageID == 3, "a request is plain")
            port.localPort.receiveFromSockets()
            #expect(try queuedMessages(at: port) == 20)
            for id in Int32(1)...20 {
                let message = try port.next()
                #expect(message.id == id && message.bytes == pattern(Int(id)))
                #expect(message.sender.processID == Self.process && message.expectsReply == (id % 3 == 0))
                if message.expectsReply { try message.reply(MachMessage(id: -id, bytes: pattern(2 * Int(id)))) }
            }
            #expect(try queuedMessages(at: port) == 0)
            for id in Int32(1)...20 where id % 3 == 0 {
                guard case .packet(let words, let payload) = ring.consumer.read() else { throw NothingCame() }
                let header = try #require(PacketHeader(words))
                #expect(header.answers == UInt64(id) && header.messageID == -id && header.asks == 0)
                #expect(payload.dropFirst(ComponentKind.headSize) == pattern(2 * Int(id))[...])
            }
        }
    }

    @Test("a second one under a token that waits for its answer ends the connection, and the first is still queued")
    func takenToken() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let (_, ring) = try client(of: port)
            try ring.write(MachMessage(id: 1, bytes: [1]), asks: 5)
            try ring.write(MachMessage(id: 2, bytes: [2]), asks: 5)
            port.localPort.receiveFromSockets()
            #expect(try ring.isRefused())
            #expect(try port.next().id == 1)
            #expect(try port.tryReceive() == nil)
        }
    }

    @Test("an answer under a token that was never used ends the connection")
    func unusedToken() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let (_, ring) = try client(of: port)
            try ring.write(answer(under: 9), Self.answerBytes)
            port.localPort.receiveFromSockets()
            #expect(try ring.isRefused())
            #expect(try port.tryReceive() == nil)
        }
    }

    @Test("an answer that is no longer awaited is dropped, and the connection goes on")
    func lateAnswer() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let (connection, ring) = try client(of: port)
            let token = try connection.givenUpToken()
            try ring.write(answer(under: token), Self.answerBytes)
            try ring.write(MachMessage(id: 2, bytes: [2]))
            port.localPort.receiveFromSockets()
            #expect(try port.next().id == 2)
            #expect(try port.tryReceive() == nil)
        }
    }

    @Test("one that is larger than the port takes is dropped, and its requester learns why")
    func tooLarge() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            var limits = PeerLimits()
            limits.messageBytes = 100
            port.setPeerLimits(limits)
            let (_, ring) = try client(of: port)
            try ring.write(MachMessage(id: 1, bytes: pattern(200)), asks: 3)
            try ring.write(MachMessage(id: 2, bytes: pattern(20)), asks: 4)
            port.localPort.receiveFromSockets()
            #expect(try port.next().id == 2)
            var consumer = ring.consumer
            guard case .packet(let words, _) = consumer.read() else { throw NothingCame() }
            let header = try #require(PacketHeader(words))
            #expect(header.kind == .replyDropped && header.answers == 3)
            #expect(header.messageID == Int32(PortError.Code.messageTooLarge.rawValue))
        }
    }
}
