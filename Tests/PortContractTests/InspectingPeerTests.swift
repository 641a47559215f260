// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// Peers that query or tap a port in ways that the format does not allow, or too often.
@Suite("Hostile peers that inspect a port", .contract) struct InspectingPeerTests {
    @Test(
        "what the format does not have is refused, and no other peer is affected",
        arguments: [
            (PacketHeader(kind: .statistics), [UInt8]()), (PacketHeader(kind: .statistics, asks: 1), [1]),
            (PacketHeader(kind: .statistics, answers: 1), [UInt8](repeating: 0, count: 56)),
            (PacketHeader(kind: .statistics, answers: 1), [UInt8](repeating: 0, count: 48)),
            (PacketHeader(kind: .statistics, answers: 1), [UInt8](repeating: 0, count: 1032)),
            (PacketHeader(kind: .tap), [1]), (PacketHeader(kind: .tap, componentCount: 1), []),
            (PacketHeader(kind: .shown, asks: 1), [UInt8](repeating: 0, count: 8)),
            (PacketHeader(kind: .shown), [UInt8](repeating: 0, count: 8)),
            (PacketHeader(kind: .shown, asks: 1), [UInt8](repeating: 0, count: 8 + 4097)),
        ])
    func refused(header: PacketHeader, payload: [UInt8]) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(header, payload)
            port.localPort.receiveFromSockets()
            let answer = try #require(try peer.next())
            #expect(answer.kind == .refused && answer.messageID == 18)
            #expect(try peer.next() == nil)
            try bench.right(to: port).send(MachMessage(id: 7))
            #expect(try port.next().id == 7)
        }
    }

    @Test("a question in the middle of a message is refused")
    func inTheMiddle() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(PacketHeader(kind: .message, totalLength: 100), [1, 0, 0, 0])
            try peer.send(PacketHeader(kind: .statistics, asks: 1))
            port.localPort.receiveFromSockets()
            #expect(try peer.next()?.kind == .refused)
        }
    }

    @Test("a peer that asks and reads no answer is read no more, and no other peer is affected")
    func unread() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let right = try bench.right(to: port)
            var (asked, isFull) = (0, false)
            while !isFull {
                isFull = try !peer.send(PacketHeader(kind: .statistics, asks: 1))
                asked += isFull ? 0 : 1
                // Both buffers fill; then no more can be sent.
                for _ in 0..<(isFull ? 0 : 2) { port.localPort.receiveFromSockets() }
                #expect(asked < 100_000)
                if asked >= 100_000 { break }
            }
            try right.send(MachMessage(id: 7))
            #expect(try port.next().id == 7)
            let deadline = Watchdog.deadline
            for _ in 0..<asked {
                // The I/O thread sends what found no room, and only then is the peer read again: no loop serves the
                // port.
                repeat {
                    port.localPort.receiveFromSockets()
                } while try sysPoll(peer.socket.rawValue, .readable, until: .distantPast).isEmpty && .now < deadline
                #expect(try peer.next()?.kind == .statistics)
            }
        }
    }
}
