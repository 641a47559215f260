// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What loans of memory cost a message, and their borrower.
@Suite("loans of memory", .contract) struct MemoryLoanTests {
    @Test(
        "a message may have more loans than a packet has descriptors; beyond what a message may lend is copied",
        arguments: TestTransport.connected, [LoanRecord.limit, LoanRecord.limit + 10])
    func many(over transport: TestTransport, count: Int) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            try bench.serving(.weigh) { right, _ in
                for _ in 0..<2 {
                    let components = try (0..<count).map { _ in
                        MachMessage.Component.memory(try pool.loan(1).freeze())
                    }
                    let reply = try right.ask(MachMessage(components: components))
                    #expect(reply.id == Int32(count))
                    let grades = stride(from: 0, to: reply.bytes.count, by: 4).map { reply.bytes[$0] }
                    #expect(grades.count == count)
                    #expect(grades.count { $0 == 0 } == LoanRecord.limit)
                    #expect(grades.count { $0 == 2 } == count - LoanRecord.limit)
                }
            }
            pool.finish()
        }
    }

    @Test("the memory of two segments in one message comes with two files, and each of them once")
    func files() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let connection = try #require(right.destination as? RemotePort).reached()
            let message = MachMessage(
                components: try [1, 1, 50_000, 1, 50_000].map { .memory(try pool.loan($0).freeze()) })
            let encoded = try OutgoingMessage(message, lending: connection.lender(for: message))
            #expect(encoded.descriptors.count == 4)
            connection.sharedMemory.object?.lender.withdraw(encoded.loans)
            try right.send(message)
            #expect(try port.next().memory.map(\.grade) == [.shared, .shared, .shared, .shared, .shared])
            let next = try OutgoingMessage(message, lending: connection.lender(for: message))
            #expect(next.descriptors.isEmpty)
            connection.sharedMemory.object?.lender.withdraw(next.loans)
        }
    }

    @Test("a request whose requester cannot receive the reply is not sent, and returns its loan")
    func requestNotSent() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let error = portError { () throws(PortError) in
                var message = MachMessage(memory: try pool.loan(5000).freeze())
                message.replyTarget = ReplyTarget(DeafReceiver())
                try right.send(message)
            }
            #expect(error?.code == .descriptorLimit)
            #expect(pool.lentByteCount == 0)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a client with as much memory of the server's as it may have gets copies, and is served on",
        arguments: [TestTransport.socket, .ring])
    func clientAtItsLimit(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            try bench.serving({ _, message in
                try? message.reply(MachMessage(memory: try pool.loan(Int(message.id)).freeze()))
            }) { right, port, _ in
                try #require(port.localPort.sockets).quotas.withLock { $0.limits.queuedBytes = 1 << 20 }
                for _ in 0..<3 {
                    // One by one, each is released before the next.
                    for size: Int32 in [1000, 300_000, 1 << 20, 2 << 20] {
                        let memory = try #require(try right.ask(MachMessage(id: size)).memory.first)
                        #expect(memory.grade == (size < 1 << 20 ? .shared : .copied), "\(size)")
                    }
                    var retained: [MessageMemory] = []
                    for _ in 0..<6 { retained += try right.ask(MachMessage(id: 300_000)).memory }
                    #expect(retained.count { $0.grade == .shared } == 1)
                    #expect(retained.allSatisfy { $0.count == 300_000 })
                }
            }
            #expect(pool.lentByteCount == 0)
        }
    }
}

/// Stands for a requester that has no descriptor left.
private final class DeafReceiver: ReplyReceiver {
    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) {}
    func fail(_ error: PortError) {}
    func expectReply(over connection: any ReplyConnection) throws(PortError) { throw PortError(.descriptorLimit) }
}
