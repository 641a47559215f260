// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// Clients that write the packets of the flow control by hand: what they say changes only what they may send themselves.
@Suite("hostile clients and the flow control", .contract) struct HostileCreditTests {
    /// Sends a question over a connection of its own.
    private func ask(
        _ count: UInt32, _ key: UInt64, _ memory: SharedDescriptor? = nil, _ port: MachPort, _ bench: Bench
    ) throws -> RawPeer {
        let peer = try RawPeer(to: port, on: bench)
        let descriptors = memory.map { [$0] } ?? []
        try peer.send(
            PacketHeader(
                kind: .credit, descriptorCount: UInt16(descriptors.count), componentCount: count, asks: key), [],
            descriptors)
        return peer
    }

    private func answer(to peer: RawPeer) throws -> UInt32? {
        let header = try peer.next()
        #expect(header?.kind == .credit)
        return header?.componentCount
    }

    /// A client that has sent the number of its connection.
    private func client(_ key: UInt64, _ port: MachPort, _ bench: Bench) throws -> RawPeer {
        let peer = try RawPeer(to: port, on: bench)
        try peer.send(PacketHeader(kind: .credit, asks: key))
        return peer
    }

    @Test("a client that ignores its grant fills the queue, and no more; others are served")
    func ignores() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 4)
            let peer = try client(1, port, bench)
            for id in Int32(0)..<50 { try peer.send(MachMessage(id: id)) }
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 4)
            #expect(try !port.makeSendRight().trySend(MachMessage(id: -1)))
            let own = runOnThread { try port.makeSendRight().send(MachMessage(id: 100)) }
            var ids: [Int32] = []
            while ids.count < 51 { ids.append(try port.next().id) }
            try own.join()
            #expect(ids.contains(100) && ids.filter { $0 < 50 } == Array(0..<50))
        }
    }

    @Test(
        "whatever a client counts, the room for others is what is left of the queue", arguments: [0, 2, 1 << 40, .max])
    func falseCount(said: UInt64) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 4)
            let peer = try client(1, port, bench)
            let (word, file) = try SentCount.make()
            #expect(try answer(to: ask(1, 1, file, port, bench)) == 4)
            for id in Int32(0)..<2 { try peer.send(MachMessage(id: id)) }
            word.store(said)
            port.localPort.receiveFromSockets()
            // What it says to have sent within its grant counts for a while.
            #expect(port.queueCount == (said > 2 ? 4 : 2))
            let own = try port.makeSendRight().sendUntilFull(bytes: 0)
            #expect(own == (said > 2 ? 0 : 2))
            if said > 2 { for _ in 0..<2 { try port.makeSendRight().send(MachMessage(id: 9)) } }
            #expect(try !port.makeSendRight().trySend(MachMessage(id: -1)))
        }
    }

    @Test("questions for connections that are not there get no room and take none")
    func unknownNumbers() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 2)
            var asking: [RawPeer] = []
            for key in UInt64(1)...40 { asking.append(try ask(UInt32(key % 2) + 1, key, nil, port, bench)) }
            waitForIOThread()
            #expect(try port.makeSendRight().sendUntilFull(bytes: 0) == 2)
            #expect(try [port.next().id, port.next().id].count == 2)
            asking.removeAll()
            waitForIOThread()
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test("a second question over a connection, or one over a connection with messages, ends it")
    func atWrongPlaces() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let twice = try ask(3, 1, nil, port, bench)
            #expect(try answer(to: twice) == 3)
            try twice.send(PacketHeader(kind: .credit, componentCount: 3, asks: 1))
            #expect(try twice.next()?.kind == .refused)
            let mixed = try RawPeer(to: port, on: bench)
            try mixed.send(MachMessage(id: 1))
            try mixed.send(PacketHeader(kind: .credit, componentCount: 3, asks: 1))
            #expect(try port.next().id == 1)
            port.localPort.receiveFromSockets()
            #expect(try mixed.next()?.kind == .refused)
            let named = try client(5, port, bench)
            try named.send(PacketHeader(kind: .credit, asks: 6))
            port.localPort.receiveFromSockets()
            #expect(try named.next()?.kind == .refused)
        }
    }

    @Test("the number of another connection is granted nothing, and takes nothing from that")
    func sameNumber() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 2)
            let first = try client(7, port, bench)
            port.localPort.receiveFromSockets()
            let second = try client(7, port, bench)
            port.localPort.receiveFromSockets()
            let (_, file) = try SentCount.make()
            #expect(try answer(to: ask(1, 7, file, port, bench)) == 4)
            try second.send(MachMessage(id: 2))
            try first.send(MachMessage(id: 1))
            port.localPort.receiveFromSockets()
            #expect(Set(try [port.next().id, port.next().id]) == [1, 2])
        }
    }

    @Test("a question without memory, or with another file, is answered that there is none")
    func foreignMemory() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try client(3, port, bench)
            #expect(try answer(to: ask(1, 3, nil, port, bench)) == 5)
            #expect(try answer(to: ask(2, 3, SharedDescriptor(sysPacketSocket()), port, bench)) == 5)
            try peer.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
        }
    }

    @Test("a slot for which a client has waited goes to the next one when the client is gone without using it")
    func unusedSlot() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let own = port.makeSendRight()
            let clients = try (UInt64(1)...3).map { try client($0, port, bench) }
            try own.send(MachMessage(id: 0))
            let asking = try (UInt64(1)...3).map { key in try ask(2, key, SentCount.make().file, port, bench) }
            for peer in asking { #expect(try answer(to: peer) == 2) }
            #expect(try port.next().id == 0)
            #expect(try answer(to: asking[0]) == 4)
            #expect(try !own.trySend(MachMessage(id: -1)))
            try asking[0].socket.shutDown()
            #expect(try answer(to: asking[1]) == 4)
            try clients[1].socket.shutDown()
            try asking[1].socket.shutDown()
            while port.localPort.connectionCount > 3 { port.localPort.receiveFromSockets() }
            #expect(try answer(to: asking[2]) == 4)
        }
    }
}

extension SharedDescriptor {
    fileprivate func shutDown() throws { sysShutDown(rawValue) }
}
