// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("memory in messages", .contract) struct MemoryContract {
    /// Memory of which each byte depends on its place and a salt, and the sum of all.
    private func filled(_ loan: consuming LoanedMemory, _ salt: UInt8 = 3) -> (MessageMemory, sum: UInt8) {
        var loan = loan
        let count = loan.count
        var sum: UInt8 = 0
        loan.withBytes { bytes in
            for index in 0..<count {
                let byte = UInt8(truncatingIfNeeded: index &* 7) &+ salt
                bytes.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
                sum &+= byte
            }
        }
        return (loan.freeze(), sum)
    }

    /// What `weigh` replies for such memory.
    private func weight(_ memory: (MessageMemory, sum: UInt8), _ grade: UInt8, _ salt: UInt8 = 3) -> [UInt8] {
        let last = UInt8(truncatingIfNeeded: (memory.0.count - 1) &* 7) &+ salt
        return memory.0.count == 0 ? [grade, 0, 0, 0] : [grade, salt, last, memory.sum]
    }

    @Test(
        "memory of every size and grade is read in place as it was written", arguments: TestTransport.withName,
        [0, 1, 4_096, 65_537, 1 << 20, rounds(5 << 20)])
    func sizes(over transport: TestTransport, size: Int) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            try bench.serving(.weigh) { right, _ in
                for _ in 0..<3 {
                    let shared = filled(try pool.loan(size))
                    var reply = try right.ask(MachMessage(memory: shared.0))
                    #expect(reply.id == Int32(size) && reply.bytes == weight(shared, 0))
                    let sealed = filled(try LoanedMemory(sealable: size))
                    reply = try right.ask(MachMessage(memory: sealed.0))
                    #expect(reply.id == Int32(size) && reply.bytes == weight(sealed, 1))
                }
                let copied = (
                    MessageMemory([UInt8](repeating: 3, count: size)), sum: UInt8(truncatingIfNeeded: size &* 3)
                )
                let reply = try right.ask(MachMessage(memory: copied.0))
                #expect(reply.bytes == (size == 0 ? [2, 0, 0, 0] : [2, 3, 3, copied.sum]))
            }
            pool.finish()
        }
    }

    @Test("several memories, bytes and descriptors of a message keep their order", arguments: TestTransport.withName)
    func mixed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (pool, pipe) = (MemoryPool(), try TestPipe())
            try bench.serving(.weigh) { right, _ in
                for _ in 0..<2 {
                    let memories = [
                        filled(try pool.loan(70_000), 1), filled(try LoanedMemory(sealable: 10), 2),
                        filled(try pool.loan(9), 4),
                    ]
                    let message = MachMessage(components: [
                        .memory(memories[0].0), .bytes([1, 2]), .descriptor(pipe.writing), .memory(memories[1].0),
                        .memory(MessageMemory([9])), .memory(memories[2].0), .right(right),
                    ])
                    #expect(message.memory.map(\.count) == [70_000, 10, 1, 9])
                    let reply = try right.ask(message)
                    #expect(
                        reply.bytes == weight(memories[0], 0, 1) + weight(memories[1], 1, 2) + [2, 9, 9, 9]
                            + weight(memories[2], 0, 4))
                }
            }
            pool.finish()
        }
    }

    @Test("a reply may have memory of the server's pool, which is returned", arguments: TestTransport.withName)
    func replies(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.lend) { right, _ in
                for size in [1, 100_000, 3 << 20, 1, 100_000] {
                    let reply = try right.ask(MachMessage(id: Int32(size)))
                    let memory = try #require(reply.memory.first)
                    #expect(memory.grade == .shared && memory.count == size)
                    #expect(memory.copy().allSatisfy { $0 == UInt8(truncatingIfNeeded: size) })
                }
            }
        }
    }

    @Test("received memory that is sent on arrives whole", arguments: TestTransport.withName)
    func sentOn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            try bench.serving(.echo) { right, _ in
                let (shared, sealed) = (filled(try pool.loan(100_000)), filled(try LoanedMemory(sealable: 5000)))
                let reply = try right.ask(MachMessage(components: [.memory(shared.0), .memory(sealed.0)]))
                #expect(reply.memory.map { $0.copy() } == [shared.0.copy(), sealed.0.copy()])
                // Sealed memory goes on as it is; that of another process's pool as a copy.
                #expect(reply.memory.map(\.grade) == [transport == .memory ? .shared : .copied, .sealed])
            }
            pool.finish()
        }
    }

    @Test(
        "a pool without room waits until received memory is released, here or in another process",
        arguments: TestTransport.withName)
    func waits(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool(capacity: 1 << 20)
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.send(MachMessage(memory: filled(try pool.loan(1 << 20)).0))
            #expect(try !pool.hasRoom(1))
            let error = portError { () throws(PortError) in _ = try pool.loan(1, within: .milliseconds(3)) }
            #expect(error?.code == .poolFull)
            #expect("\(try #require(error))".contains("1 of at most 1048576 bytes"))
            let waiter = runOnThread { try pool.loan(1 << 20, within: longTimeout).count }
            let counts = Recorder<Int>("loans of tasks")
            Task { counts.append(try await pool.loan(4096, within: longTimeout).count) }
            _ = try port.next()
            #expect(try waiter.join() == 1 << 20)
            counts.waitUntilCount(1)
            #expect(pool.lentByteCount == 0 && pool.reservedByteCount <= 1 << 20)
        }
    }

    @Test("a loan that is not sent, or cannot be, goes back to its pool", arguments: TestTransport.allCases)
    func unsent(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            let (fullPort, full, _) = try bench.farFull()
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            do { _ = try pool.loan(5000) }
            #expect(pool.lentByteCount == 0)
            let error = portError { () throws(PortError) in
                try full.send(MachMessage(memory: try pool.loan(5000).freeze()), within: .zero)
            }
            #expect(error?.code == .sendTimedOut && pool.lentByteCount == 0)
            withExtendedLifetime(fullPort) {}
            try port.invalidate()
            let dead = portError { () throws(PortError) in
                while true { try right.send(MachMessage(memory: try pool.loan(5000).freeze())) }
            }
            #expect(dead?.code == .deadName && pool.lentByteCount == 0)
        }
    }

    @Test(
        "what was sent stays as it was when its sender drops the right, or ends the port, until its receiver releases it",
        arguments: [TestTransport.socket, .ring])
    func ended(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            let port = try bench.port()
            let expected = filled(try pool.loan(10_000)).0.copy()
            var right: SendRight? = try bench.right(to: port)
            for _ in 0..<4 { try right?.send(MachMessage(memory: filled(try pool.loan(10_000)).0)) }
            var received = try (0..<2).map { _ in try port.next() }
            right = nil
            // All other memory of the pool is written.
            var loans: [MessageMemory] = []
            for _ in 0..<100 { loans.append(filled(try pool.loan(10_000), 200).0) }
            received += try (0..<2).map { _ in try port.next() }
            for message in received { #expect(message.memory.first?.copy() == expected) }
            #expect(pool.lentByteCount == 104 * 12_288)
            loans = []
            received.removeLast(3)
            pool.waitUntilLent(12_288)
            #expect(received[0].memory.first?.copy() == expected)
            received = []
            // Its page, or the end of the connection at the receiver, says so.
            pool.finish { _ = try? port.tryReceive() }
        }
    }

    @Test("a receiver that is gone leaves nothing at the pool, though other memory of the same segment is in use")
    func departed() async throws {
        try await onBench(over: .socket) { bench in
            let pool = MemoryPool()
            let port = try bench.port()
            let busy = try pool.loan(10_000).freeze()
            for _ in 0..<10 {
                var right: SendRight? = try bench.right(to: port)
                try right?.send(MachMessage(memory: filled(try pool.loan(10_000)).0))
                var received: MachMessage? = try port.next()
                right = nil
                _ = try port.tryReceive()
                #expect(received?.memory.first?.copy().first == 3)
                received = nil
                pool.waitUntilLent(12_288) { _ = try? port.tryReceive() }
                #expect(pool.lenderCount == 0)
            }
            withExtendedLifetime(busy) {}
        }
    }

    @Test("memory of a reply stays as it was when its receiver drops the right, or the server ends its port")
    func endedReply() async throws {
        try await onBench(over: .socket) { bench in
            let pool = MemoryPool()
            let expected = filled(try pool.loan(10_000)).0.copy()
            let port = try bench.port { _, message in
                guard let loan = try? pool.loan(10_000) else { return }
                try? message.reply(MachMessage(memory: filled(loan).0))
            }
            let worker = Worker()
            try port.schedule(on: worker.loop)
            var right: SendRight? = try bench.right(to: port)
            var memory = try right?.ask(MachMessage()).memory.first
            right = nil
            port.invalidate()
            var loans: [MessageMemory] = []
            for _ in 0..<100 { loans.append(filled(try pool.loan(10_000), 200).0) }
            #expect(memory?.copy() == expected)
            (loans, memory) = ([], nil)
            pool.finish()
            try worker.end()
        }
    }

    @Test("memory that nobody uses is given back: the descriptor, and the mapping on the other side")
    func trimmed() async throws {
        try await onBench(over: .socket) { bench in
            let pool = MemoryPool()
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(memory: filled(try pool.loan(10_000)).0))
            _ = try port.next()
            #expect(pool.lentByteCount == 0 && pool.reservedByteCount > 0)
            pool.trim()
            #expect(pool.reservedByteCount == 0)
            try right.send(MachMessage(memory: filled(try pool.loan(20_000)).0))
            #expect(try port.next().memory.first?.count == 20_000)
            let connection = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            let memory = connection.sharedMemory.object
            #expect(memory?.segmentCount == 1)
        }
    }

    @Test("after the first message no descriptor travels, and memory of a pool is made once")
    func warm() async throws {
        try await onBench(over: .socket) { bench in
            let pool = MemoryPool()
            let port = try bench.port()
            let right = try bench.right(to: port)
            let remote = try #require(right.destination as? RemotePort)
            let connection = try remote.reached()
            for round in 0..<100 {
                let memory = filled(try pool.loan(1 << 20)).0
                let encoded = try OutgoingMessage(
                    MachMessage(memory: memory), lending: connection.lender(for: MachMessage(memory: memory)))
                #expect(encoded.descriptors.count == (round == 0 ? 2 : 0) && encoded.size == 64)
                connection.sharedMemory.object?.lender.withdraw(encoded.loans)
                try right.send(MachMessage(memory: memory))
                _ = try port.next()
            }
            #expect(pool.reservedByteCount <= 2 << 20)
        }
    }

    @Test(
        "one memory sent to many receivers is returned when the last has released it",
        arguments: TestTransport.inProcess)
    func fanOut(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let pool = MemoryPool()
            let ports = try (0..<3).map { _ in try bench.port() }
            let rights = try ports.map { try bench.right(to: $0) }
            do {
                let memory = filled(try pool.loan(10_000)).0
                for right in rights { try right.send(MachMessage(memory: memory)) }
            }
            for port in ports {
                #expect(pool.lentByteCount == 12_288)
                _ = try port.next()
            }
            // Another thread may be reading the page that says so.
            let deadline = Watchdog.deadline
            while pool.lentByteCount > 0, .now < deadline { yieldThread() }
            #expect(pool.lentByteCount == 0)
        }
    }

    @Test("lent bytes count in the receiver's and in the sender's account")
    func charged() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, owner) = (MemoryPool(), PeerID.process(sysProcessID()))
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(memory: filled(try pool.loan(1 << 20)).0))
            port.localPort.receiveFromSockets()
            let quotas = try #require(port.localPort.sockets).quotas
            quotas.withLock { $0.limits.queuedBytes = 1 << 20 }
            #expect(quotas.isOver(owner))
            _ = try port.next()
            #expect(!quotas.isOver(owner))
            pool.finish()
        }
    }

    @Test("an absurd loan is refused with its size and the limit")
    func absurd() throws {
        let pool = MemoryPool(capacity: 8192)
        let error = portError { () throws(PortError) in _ = try pool.tryLoan(8193) }
        #expect(error?.code == .messageTooLarge)
        #expect("\(try #require(error))".contains("8193 of at most 8192"))
        #expect(try pool.hasRoom(8192))
    }
}

extension MemoryPool {
    /// Waits until nothing is lent, and gives all memory back.
    func finish(_ body: () -> Void = {}) {
        waitUntilLent(0, body)
        trim()
        #expect(reservedByteCount == 0)
    }

    /// Waits until no more is lent.
    func waitUntilLent(_ byteCount: Int, _ body: () -> Void = {}) {
        let deadline = Watchdog.deadline
        while lentByteCount > byteCount {
            if .now >= deadline { return Watchdog.expired("the return of what was lent") }
            body()
            yieldThread()
        }
    }

    /// Whether there is room for a loan now, which ends at once.
    fileprivate func hasRoom(_ byteCount: Int) throws -> Bool {
        if let loan = try tryLoan(byteCount) { loan.count == byteCount } else { false }
    }
}
