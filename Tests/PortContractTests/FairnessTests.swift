// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// What one process sends delays no other, however many connections it uses.
@Suite("fairness between processes", .contract) struct FairnessTests {
    /// A client of a port that poses as one of another process.
    private struct Client {
        let peer: RawPeer

        init(_ process: Int32, at port: MachPort) throws {
            peer = try SocketConnection.posing(as: process, at: port).1
        }

        func send(_ id: Int32, times: Int = 1) throws {
            for _ in 0..<times { try peer.send(MachMessage(id: id)) }
        }
    }

    private static let (busyPeer, other) = (Int32(900_001), Int32(900_002))

    @Test(
        "a process with many connections full of messages keeps another waiting for about the queue, not for them all")
    func busyPeer() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let busyPeer = try (0..<150).map { _ in try Client(Self.busyPeer, at: port) }
            for client in busyPeer { try client.send(1, times: 40) }
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == port.queueLimit)
            let late = try Client(Self.other, at: port)
            try late.send(7)
            // Nothing that the others sent is lost.
            #expect(try port.countOthers(than: 7) == 150 * 40)
            withExtendedLifetime((busyPeer, late)) {}
        }
    }

    @Test("between two messages a port accepts only a few of the clients that have connected at once")
    func clientsAtOnce() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1024)
            let accepted = Counter()
            // Of one that asks the program no other thread accepts clients.
            port.setPeerPolicy(
                PeerPolicy { _ in
                    accepted.increment()
                    return true
                })
            let clients = try (0..<3 * Tuning.acceptBudget).map { _ in try RawPeer(to: port, on: bench) }
            for client in clients { try client.send(MachMessage(id: 1)) }
            var before = 0
            for _ in clients {
                #expect(try port.tryReceive()?.id == 1)
                let count = accepted.value
                #expect(count - before <= Tuning.acceptBudget)
                before = count
            }
            #expect(before == clients.count)
        }
    }

    @Test("each process finds room in a queue that several others keep full")
    func several() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 8)
            let clients = try (0..<40).map { try Client(Self.busyPeer + 10 + Int32($0 % 4), at: port) }
            for client in clients { try client.send(1, times: 30) }
            let late = try Client(Self.other, at: port)
            for _ in 0..<20 {
                port.localPort.receiveFromSockets()
                try late.send(7)
                var count = 0
                while try port.next().id != 7 { count += 1 }
                #expect(count <= 3 * port.queueLimit)
            }
            withExtendedLifetime((clients, late)) {}
        }
    }

    @Test("a port that drops what it has no room for reads a limited number of packets of one process per message")
    func flood() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 4, policy: .dropOldest)
            let flood = try (0..<60).map { _ in try Client(Self.busyPeer, at: port) }
            for client in flood { try client.send(1, times: 150) }
            let other = try Client(Self.other, at: port)
            try other.send(7)
            #expect(try port.countFlood() == 60 * 150 + 1)
            withExtendedLifetime((flood, other)) {}
        }
    }
}
