// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Memory alone, of a segment that the other side knows, goes through a ring as plain bytes do: with the checks, accounts
/// and returns of all memory.
@Suite("plain loans", .rings, .contract) struct PlainLoanTests {
    private static let process = Int32(900_002)
    private static let segmentSize = 32_768

    /// A client of a port that has lent memory of a segment over the socket, and has rings since.
    private struct Client {
        let connection: SocketConnection
        let ring: RingPeer
        /// The page on which the port's process notes what it has returned.
        let page: ReturnPage

        init(at port: MachPort) throws {
            _ = try port.localPort.openSockets()
            let peer: RawPeer
            (connection, peer) = try SocketConnection.posing(as: process, at: port)
            ring = try RingPeer(peer) { port.localPort.receiveFromSockets() }
            try peer.lend(LoanRecord(1, size: segmentSize), try RawMemory.file(segmentSize))
            try port.expectMemory()
            let file = try #require(try peer.nextPacket(.returnPage)?.descriptors.first)
            page = try #require(try ReturnPage.map(file))
            try peer.send(PacketHeader(kind: .pathChange))
            port.localPort.receiveFromSockets()
        }

        func lend(
            _ number: UInt64, segment: UInt64 = 1, size: Int = segmentSize, offset: Int = 0, count: Int = 10
        ) throws {
            var records = RawRecords()
            records.append(LoanRecord(number, segment: segment, size: size, offset: offset, count: count))
            records.append(.lentMemory)
            try ring.write(records.header(), records.payload)
        }

        /// Receives one packet: whether that was a plain loan.
        func receivesLoan() -> Bool {
            connection.receive(into: connection.sink, limit: 1)
            return connection.receiver.state.withLock { state in
                state.packets.count == 1 && state.packets[0].firstWord == LoanRecord.plainHead
            }
        }
    }

    private func cost(at port: MachPort) throws -> ResourceUsage {
        let accounts = try #require(port.localPort.sockets).quotas
        let allowance = accounts.withLock { $0.allowance(of: .process(Self.process)) }
        return ResourceUsage(
            messages: Int.max - allowance.messages, bytes: PeerLimits.standard.queuedBytes - allowance.bytes)
    }

    @Test("one is charged with its memory until it is received, is read in place, and is returned on the page")
    func account() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let client = try Client(at: port)
            #expect(try cost(at: port) == ResourceUsage())
            try client.lend(2, offset: 4096, count: 20_000)
            #expect(client.receivesLoan() && port.queueCount == 1)
            let overhead = ResourceUsage.message + ResourceUsage.component
            #expect(try cost(at: port) == ResourceUsage(messages: 1, bytes: 64 + overhead + 20_000))
            #expect(port.statistics.byteCount == 10 + 20_000)
            do {
                let message = try port.next()
                #expect(try cost(at: port) == ResourceUsage())
                #expect(message.id == 1 && message.sender.processID == Self.process)
                let memory = try #require(message.memory.first)
                #expect(message.memory.count == 1 && memory.count == 20_000 && memory.grade == .shared)
                #expect(memory.withBytes { $0.byteCount } == 20_000)
                #expect(!client.page.hasReturned(2))
            }
            #expect(client.page.hasReturned(2))
        }
    }

    @Test("they keep their order among plain bytes, and messages of other kinds")
    func order() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 100)
            let client = try Client(at: port)
            for number in 2..<UInt64(40) {
                try client.lend(number, count: Int(number))
                for count in 0..<Int(number % 3) {
                    try client.ring.write(MachMessage(id: 7, bytes: pattern(count)))
                }
                if number % 5 == 0 { try client.ring.write(MachMessage(id: 8)) }
            }
            for number in 2..<UInt64(40) {
                #expect(try port.next().memory.map(\.count) == [Int(number)])
                for count in 0..<Int(number % 3) { #expect(try port.next().bytes == pattern(count)) }
                if number % 5 == 0 { #expect(try port.next().id == 8) }
            }
            #expect(try port.tryReceive() == nil && (2..<UInt64(40)).allSatisfy { client.page.hasReturned($0) })
            #expect(try cost(at: port) == ResourceUsage())
        }
    }

    @Test("one for which the queue has no slot stays where it is, and is not returned")
    func fullQueue() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let client = try Client(at: port)
            try client.lend(2)
            try client.lend(3)
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 1 && !client.page.hasReturned(2) && !client.page.hasReturned(3))
            #expect(try cost(at: port).messages == 1)
            for number: UInt64 in 2...3 {
                _ = try port.next()
                #expect(client.page.hasReturned(number))
            }
            #expect(try cost(at: port) == ResourceUsage())
        }
    }

    @Test("a process whose memory fills its account is not read further, and goes on when that is received")
    func quota() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 100)
            let client = try Client(at: port)
            try #require(port.localPort.sockets).quotas.withLock { $0.limits.queuedBytes = 50_000 }
            for number: UInt64 in 2...9 { try client.lend(number, count: 20_000) }
            port.localPort.receiveFromSockets()
            // The one that exceeds the limit is the last.
            #expect(port.queueCount == 3)
            for _ in 2...9 { _ = try port.next() }
            #expect(try port.tryReceive() == nil && (2...9).allSatisfy { client.page.hasReturned($0) })
        }
    }

    @Test("what a dead port has not handled is returned")
    func deadPort() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let client = try Client(at: port)
            try client.lend(2)
            port.localPort.receiveFromSockets()
            try client.lend(3)
            port.invalidate()
            #expect(client.page.hasReturned(2) && client.page.hasReturned(3))
        }
    }

    enum Breach: CaseIterable, Sendable {
        case numberZero, offsetBeyond, countBeyond, sumBeyond, sizeOfAnother, sizeZero
        case withoutComponent, componentWithBody, otherComponent, surplus, headShorter

        fileprivate func records() -> RawRecords {
            var loan = LoanRecord(2, size: segmentSize)
            switch self {
            case .numberZero: loan.number = 0
            case .offsetBeyond: (loan.offset, loan.count) = (segmentSize + 1, 0)
            case .countBeyond: loan.count = segmentSize + 1
            case .sumBeyond: (loan.offset, loan.count) = (segmentSize - 5, 6)
            case .sizeOfAnother: loan.segmentSize = segmentSize + 4096
            case .sizeZero: (loan.segmentSize, loan.count) = (0, 0)
            default: break
            }
            var records = RawRecords()
            switch self {
            case .headShorter: records.append(.loan, length: LoanRecord.size - 8, loan.bytes)
            default: records.append(loan)
            }
            switch self {
            case .withoutComponent: break
            case .componentWithBody: records.append(.lentMemory, [1])
            case .otherComponent: records.append(.bytes)
            default: records.append(.lentMemory)
            }
            if self == .surplus { records.append(.lentMemory) }
            return records
        }
    }

    @Test("one that breaks the format ends the connection", arguments: Breach.allCases)
    func breach(_ breach: Breach) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let client = try Client(at: port)
            let records = breach.records()
            try client.ring.write(records.header(), records.payload)
            port.localPort.receiveFromSockets()
            #expect(try port.tryReceive() == nil)
            #expect(try client.ring.peer.isRefused())
        }
    }

    @Test("one of a segment that nobody knows is lost, its lender is notified, and the next one arrives")
    func unknown() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let client = try Client(at: port)
            try client.lend(2, segment: 7)
            try client.lend(3)
            #expect(try port.next().memory.map(\.count) == [10])
            var consumer = client.ring.consumer
            guard case .packet(let words, _) = consumer.read() else { throw NothingCame() }
            #expect(PacketHeader(words)?.kind == .returned)
            #expect(PacketHeader(words)?.asks == 2 && PacketHeader(words)?.componentCount == 1)
        }
    }

    @Test("one that is not sent, because the port is gone, or its queue is full, is returned")
    func unsent() async throws {
        try await onBench(over: .ring) { bench in
            let pool = MemoryPool()
            func message() throws(PortError) -> MachMessage { MachMessage(memory: try pool.loan(5000).freeze()) }
            let port = try bench.farPort(queueLimit: 5)
            let right = try bench.right(to: port)
            var count = 0
            let error = portError { () throws(PortError) in
                while true {
                    try right.send(try message(), within: .zero)
                    count += 1
                }
            }
            #expect(error?.code == .sendTimedOut && pool.lentByteCount == count * 8192)
            try port.invalidate()
            let dead = portError { () throws(PortError) in while true { try right.send(try message()) } }
            #expect(dead?.code == .deadName)
            pool.finish()
        }
    }
}
