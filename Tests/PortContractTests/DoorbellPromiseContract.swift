// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Docs/Decisions/0009: a doorbell is never unreadable while a message waits, and one that was signalled for nothing
// falls silent.

import ContractServices
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("what a doorbell promises", .foreignLoops) struct DoorbellPromiseContract {
    private func isReadable(_ doorbell: PortDoorbell) throws -> Bool {
        try !sysPoll(doorbell.descriptor, .readable, until: .distantPast).isEmpty
    }

    @Test("a foreign loop gets every message", arguments: ForeignLoop.allCases, TestTransport.allCases)
    func everyMessage(in loop: ForeignLoop, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3)
            let right = try bench.farSender(to: port)
            try right.beginSending(200)
            #expect(try loop.receive(200, from: port) == Array(0..<200))
            #expect(try right.lines(1) == ["sent"])
        }
    }

    @Test("where each edge is for one message, there is one for what comes to the socket while others are queued")
    func onePerEdge() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let set = try EpollSet()
            try set.add(port.doorbell().descriptor, [.readable, .edgeTriggered], key: 7)
            for id in Int32(0)..<2 { try right.send(MachMessage(id: id)) }
            #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
            // Both are read, and one is queued.
            #expect(try port.tryReceiveAfterEdge()?.id == 0)
            try right.send(MachMessage(id: 2))
            for id in Int32(1)..<3 {
                #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
                #expect(try port.tryReceiveAfterEdge()?.id == id)
            }
            #expect(set.wait(until: .distantPast).isEmpty)
        }
    }

    /// Sends a message in `count` pieces, each a packet of one byte.
    private func send(_ message: MachMessage, inPieces count: Int, by peer: RawPeer) throws {
        let encoded = try OutgoingMessage(message)
        let payload = encoded.bytes
        let rest = payload.suffix(count - 1)
        let header = PacketHeader(
            kind: .message, messageID: message.id, componentCount: UInt32(encoded.componentCount),
            totalLength: UInt64(payload.count))
        #expect(try peer.send(header, Array(payload.dropLast(rest.count))))
        for byte in rest { #expect(try peer.send(PacketHeader(kind: .continuation), [byte])) }
    }

    // More than one poll reads, and, the second, more than one call.
    @Test("a foreign loop gets a message of many pieces", arguments: ForeignLoop.allCases, [40, 150])
    func manyPieces(in loop: ForeignLoop, count: Int) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            #expect(try port.tryReceive()?.id == nil)  // accepts the connection
            // Everything has arrived before the first poll: nothing later wakes the loop.
            try send(MachMessage(id: 6, bytes: pattern(200)), inPieces: count, by: peer)
            #expect(try loop.receive(1, from: port) == [6])
        }
    }

    @Test("a message that has arrived is received at the first call, behind as many pieces as one poll leaves")
    func oneCall() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try send(MachMessage(id: 6, bytes: pattern(200)), inPieces: 40, by: peer)
            #expect(try port.tryReceive()?.id == 6)
        }
    }

    /// What arrives in a port's sockets without being a message.
    enum Noise: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case connection, end, piece, manyPieces, abandonment, aborted

        var testDescription: String { rawValue }
    }

    @Test("a doorbell that was signalled for no message yields nil, and falls silent", arguments: Noise.allCases)
    func fallsSilent(after noise: Noise) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let doorbell = try port.doorbell()
            #expect(try !isReadable(doorbell))
            var peer: RawPeer? = try RawPeer(to: port, on: bench)
            if noise != .connection { #expect(try port.tryReceive()?.id == nil) }
            let begin = PacketHeader(kind: .message, componentCount: 1, totalLength: 1_000)
            switch noise {
            case .connection: break
            case .end: peer = nil
            case .piece: try peer?.send(begin, [1])
            case .manyPieces:
                try peer?.send(begin, [1])
                for _ in 0..<100 { try peer?.send(PacketHeader(kind: .continuation), [0]) }
            case .abandonment: try peer?.send(PacketHeader(kind: .abandoned, asks: 1))
            case .aborted:
                try peer?.send(begin, [1])
                try peer?.send(PacketHeader(kind: .abort))
            }
            #expect(try isReadable(doorbell))
            #expect(try port.tryReceive()?.id == nil)
            #expect(try !isReadable(doorbell))
            // And it becomes readable for a message.
            try bench.right(to: port).send(MachMessage(id: 3))
            #expect(try isReadable(doorbell))
            #expect(try port.tryReceive()?.id == 3)
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a doorbell in memory is readable exactly while messages wait, whatever changes the queue")
    func exactlyInMemory() async throws {
        try await onBench(over: .memory) { _ in
            let port = MachPort(queueLimit: 4)
            let (right, doorbell) = (port.makeSendRight(), try port.doorbell())
            for step in 0..<300 {
                switch (step * 7 + step / 5) % 6 {
                case 0, 1, 2: _ = try right.trySend(MachMessage())
                case 3: _ = try port.tryReceive()
                case 4: port.setQueueLimit(1 + step % 5)
                default: while try port.tryReceive() != nil {}
                }
                #expect(try isReadable(doorbell) == (port.queueCount > 0))
            }
            port.invalidate()
            #expect(try isReadable(doorbell))
        }
    }
}
