// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("queues, and what waits in sockets", .contract) struct ArrivalContract {
    @Test(
        "the policy keeps the latest, or drops the oldest, of all that has arrived, however much",
        arguments: TestTransport.withName, [QueuePolicy.keepLatest, .dropOldest])
    func policies(over transport: TestTransport, policy: QueuePolicy) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 3, policy: policy)
            let right = try bench.right(to: port)
            for id in Int32(0)..<100 { #expect(try right.trySend(MachMessage(id: id))) }
            let expected: [Int32] = policy == .keepLatest ? [99] : [97, 98, 99]
            #expect(try expected.map { _ in try port.next().id } == expected)
            #expect(try port.tryReceive()?.id == nil)
            if policy == .keepLatest { #expect(try port.droppedMessageCount == 99) }
        }
    }

    @Test(
        "drop-oldest holds for a handler too, and for what comes while others wait", arguments: TestTransport.allCases)
    func handler(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>("messages")
            let port = try bench.port(queueLimit: 3, policy: .dropOldest) { _, message in seen.append(message.id) }
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<3 { #expect(try right.trySend(MachMessage(id: id))) }
            port.localPort.receiveFromSockets()
            for id in Int32(3)..<100 { #expect(try right.trySend(MachMessage(id: id))) }
            try port.schedule()
            while seen.count < 3 { ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true) }
            #expect(seen.elements == [97, 98, 99])
            port.invalidate()
        }
    }

    @Test("a sender that does not wait for room is not refused because another is sending")
    func besideSender() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let connection = try #require(right.destination as? RemotePort).reached()
            // Another thread is in the middle of a send.
            #expect(connection.sender.lock.lock(until: .distantPast) == true)
            let results = Recorder<Bool>("results of trySend")
            let sender = runOnThread { results.append(try right.trySend(MachMessage(id: 4))) }
            while connection.sender.lock.waitingCount == 0 && results.count == 0 { sched_yield() }
            connection.sender.lock.unlock()
            try sender.join()
            #expect(results.elements == [true])
            #expect(try port.next().id == 4)
        }
    }

    @Test("large messages that began while there was room wait for room when they are whole")
    func pieces() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let peers = try (0..<6).map { _ in try RawPeer(to: port, on: bench) }
            port.localPort.receiveFromSockets()
            for peer in peers { try Begun.begin(peer) }
            port.localPort.receiveFromSockets()
            for peer in peers { try Begun.end(peer) }
            for _ in peers {
                port.localPort.receiveFromSockets()
                #expect(port.queueCount == 1)
                #expect(try port.next().bytes == Begun.contents)
            }
            #expect(port.queueHighWaterMark == 1)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("a message that stays unfinished holds up no other sender's")
    func unfinished() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let (idle, busy) = (try RawPeer(to: port, on: bench), try RawPeer(to: port, on: bench))
            try Begun.begin(idle)
            port.localPort.receiveFromSockets()
            for id in Int32(1)...3 {
                try busy.send(MachMessage(id: id))
                #expect(try port.next().id == id)
            }
            try Begun.end(idle)
            #expect(try port.next().bytes == Begun.contents)
        }
    }

    /// A message in two pieces.
    private enum Begun {
        static let contents: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        private static let payload: [UInt8] = [1, 0, 0, 0, 8, 0, 0, 0] + contents

        static func begin(_ peer: RawPeer) throws {
            let header = PacketHeader(kind: .message, messageID: 1, componentCount: 1, totalLength: 16)
            try peer.send(header, Array(payload[..<8]))
        }

        static func end(_ peer: RawPeer) throws {
            try peer.send(PacketHeader(kind: .continuation), Array(payload[8...]))
        }
    }
}
