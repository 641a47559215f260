// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// What other processes get of a port while its handler runs, or no thread serves it: clients that write packets by hand.
@Suite("a port whose owner is busy", .contract) struct BusyOwnerTests {
    /// Calls `body` with a port whose handler runs until then.
    private func busy(
        queueLimit: Int = MachPort.defaultQueueLimit, _ body: @escaping @Sendable (MachPort, Bench) throws -> Void
    ) async throws {
        try await onBench(over: .socket) { bench in
            let (isBusy, mayEnd) = (Gate("the handler's call"), Gate("the end of the handler"))
            let port = try bench.port(queueLimit: queueLimit) { _, message in
                if message.id != 0 { return }
                isBusy.open()
                mayEnd.wait()
            }
            let worker = Worker()
            defer { port.invalidate() }
            let result = Result {
                try port.schedule(on: worker.loop)
                try port.makeSendRight().send(MachMessage(id: 0))
                isBusy.wait()
                defer { mayEnd.open() }
                try body(port, bench)
            }
            try worker.end()
            try result.get()
        }
    }

    private func ask(_ peer: RawPeer) throws -> PortStatistics {
        try peer.send(PacketHeader(kind: .statistics, asks: 1))
        return try answer(to: peer)
    }

    private func answer(to peer: RawPeer) throws -> PortStatistics {
        _ = try sysPoll(peer.socket.rawValue, .readable, until: Watchdog.deadline)
        let (_, bytes) = try sysReceivePacket(peer.socket.rawValue, limit: PacketHeader.packetLimit)
        #expect(PacketHeader(bytes)?.kind == .statistics)
        return try #require(PortStatistics(payload: Array(bytes.dropFirst(PacketHeader.size))))
    }

    @Test("it reports its statistics: what has arrived and no thread has read counts as waiting")
    func statistics() async throws {
        try await busy(queueLimit: 8) { port, bench in
            let sender = try RawPeer(to: port, on: bench)
            for id in Int32(1)...3 { try sender.send(MachMessage(id: id)) }
            let answer = try ask(RawPeer(to: port, on: bench))
            #expect(answer.queueCount == 3 && answer.queueHighWaterMark == 3 && answer.queueLimit == 8)
            #expect(answer.messageCount == 4 && answer.clientCount == 1)
        }
    }

    @Test("of what has arrived, as much counts as waiting as the queue takes")
    func fullQueue() async throws {
        try await busy(queueLimit: 2) { port, bench in
            let sender = try RawPeer(to: port, on: bench)
            for id in Int32(1)...5 { try sender.send(MachMessage(id: id)) }
            #expect(try ask(RawPeer(to: port, on: bench)).queueCount == 2)
        }
    }

    @Test("a query that comes later than its connection is answered too")
    func lateQuery() async throws {
        try await busy { port, bench in
            let peer = try RawPeer(to: port, on: bench)
            // The connection was accepted: the client that comes next is answered.
            _ = try ask(RawPeer(to: port, on: bench))
            #expect(try ask(peer).queueCount == 0)
        }
    }

    @Test("it refuses a client that its policy does not admit")
    func refuses() async throws {
        try await busy { port, bench in
            port.setPeerPolicy(.users([]))
            let refusal = try RawPeer(to: port, on: bench).next()
            #expect(refusal?.kind == .refused)
            #expect(refusal?.messageID == Int32(PortError.Code.peerRefused.rawValue))
        }
    }

    @Test("a policy of the program's is asked on the threads that receive for the port")
    func asksOnItsThreads() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let asking = Recorder<Int32>()
            port.setPeerPolicy(
                PeerPolicy { _ in
                    asking.append(sysThreadID())
                    return true
                })
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            waitForIOThread()
            #expect(asking.elements.isEmpty)
            #expect(try port.next().id == 1)
            #expect(asking.elements == [sysThreadID()])
        }
    }

    @Test("a message that has arrived before a poll is found by it, also while the I/O thread accepts its client")
    func neverMissed() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            for id in Int32(0)..<Int32(rounds(400)) {
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(MachMessage(id: id))
                let asking = try id % 4 == 0 ? RawPeer(to: port, on: bench) : nil
                try asking?.send(PacketHeader(kind: .statistics, asks: 1))
                let received = try port.tryReceive()?.id
                #expect(received == id)
                if received != id { return }
            }
        }
    }

    @Test("a message that has arrived before a poll is found by it, also while the I/O thread moves it into the queue")
    func neverMissedWhileMoved() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let sender = try RawPeer(to: port, on: bench)
            let asking = try RawPeer(to: port, on: bench)
            _ = try ask(asking)
            for id in Int32(0)..<Int32(rounds(1000)) {
                try asking.send(PacketHeader(kind: .statistics, asks: 1))
                try sender.send(MachMessage(id: id))
                let received = try port.tryReceive()?.id
                #expect(received == id)
                if received != id { return }
                #expect(try asking.next()?.kind == .statistics)
            }
        }
    }

    @Test("what clients have sent that were accepted together counts in the answer to each of them")
    func togetherAccepted() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let first = try RawPeer(to: port, on: bench)
            try first.send(PacketHeader(kind: .statistics, asks: 1))
            let sender = try RawPeer(to: port, on: bench)
            for id in Int32(0)..<50 { try sender.send(MachMessage(id: id)) }
            let last = try RawPeer(to: port, on: bench)
            try last.send(PacketHeader(kind: .statistics, asks: 1))
            // They wait to be asked about; now the I/O thread accepts them.
            port.setPeerPolicy(.sameUser)
            for peer in [first, last] { #expect(try answer(to: peer).queueCount == 50) }
        }
    }

    @Test("any number of clients that its policy does not admit is refused")
    func refusesMany() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let peers = try (0..<200).map { _ in try RawPeer(to: port, on: bench) }
            port.setPeerPolicy(.users([]))
            for peer in peers { #expect(try peer.next()?.kind == .refused) }
        }
    }

    @Test("any number of clients is answered one after the other, also when the queue is full, and none stays")
    func manyInTurn() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let sender = try RawPeer(to: port, on: bench)
            for id in Int32(0)..<3 { try sender.send(MachMessage(id: id)) }
            for _ in 0..<200 { #expect(try ask(RawPeer(to: port, on: bench)).queueCount == 1) }
            waitForIOThread()
            #expect(port.localPort.connectionCount == 1)
        }
    }

    @Test("a policy of the program's is never asked on the I/O thread, although policies change while clients come")
    func changingPolicies() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let asking = Recorder<Int32>()
            for id in Int32(0)..<Int32(rounds(200)) {
                port.setPeerPolicy(.sameUser)
                let peers = try (0..<4).map { _ in try RawPeer(to: port, on: bench) }
                port.setPeerPolicy(
                    PeerPolicy { _ in
                        asking.append(sysThreadID())
                        return true
                    })
                try peers[3].send(MachMessage(id: id))
                #expect(try port.next().id == id)
            }
            #expect(asking.elements.allSatisfy { $0 == sysThreadID() })
        }
    }

    @Test("a query that comes while a thread polls is answered, although no thread polls again")
    func duringPoll() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let asking = try (0..<rounds(200)).map { _ in try RawPeer(to: port, on: bench) }
            let poller = runOnThread { for _ in 0..<2_000 { port.localPort.receiveFromSockets() } }
            for peer in asking { try peer.send(PacketHeader(kind: .statistics, asks: 1)) }
            try poller.join()
            for peer in asking { #expect(try peer.next()?.kind == .statistics) }
        }
    }

    @Test("a client that only asks, and goes, is no connection of a port that no thread polls")
    func goes() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            for _ in 0..<20 {
                let peer = try RawPeer(to: port, on: bench)
                _ = try ask(peer)
            }
            waitForIOThread()
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test("a client that asks and reads no answer is not read endlessly")
    func unreadAnswers() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            // Both directions of the connection fill; then no more can be sent, although the I/O thread has had its turn.
            var (asked, isFull) = (0, false)
            while !isFull, asked < 100_000 {
                isFull = try !peer.send(PacketHeader(kind: .statistics, asks: 1))
                if isFull {
                    waitForIOThread()
                    isFull = try !peer.send(PacketHeader(kind: .statistics, asks: 1))
                }
                asked += 1
            }
            #expect(isFull)
            // Others are answered.
            #expect(try ask(RawPeer(to: port, on: bench)).queueCount == 0)
        }
    }

    @Test("what the peer of a new connection sends first is left to the port, unless it is a query")
    func leavesMessages() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            waitForIOThread()
            #expect(port.statistics.messageCount == 0)
            #expect(try port.next().id == 1)
        }
    }
}
