// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Plain messages are read out of a ring several at a time. No user of a port may notice.
@Suite("receive batches", .rings, .contract) struct ReceiveBatchTests {
    private static let process = Int32(900_001)

    /// A port that has sockets and limits of its own, and a client with rings.
    private func pair(
        on bench: Bench, queueLimit: Int = MachPort.defaultQueueLimit, _ change: (inout PeerLimits) -> Void = { _ in }
    ) throws -> (MachPort, RingClient) {
        let port = try bench.port(queueLimit: queueLimit)
        var limits = PeerLimits()
        change(&limits)
        port.setPeerLimits(limits)
        _ = try port.localPort.openSockets()
        return (port, try RingClient(Self.process, at: port))
    }

    /// What the messages of the client's process occupy at the port. The descriptor with which it offered rings may
    /// still wait to be closed.
    private func cost(at port: MachPort) throws -> ResourceUsage {
        let accounts = try #require(port.localPort.sockets).quotas
        let allowance = accounts.withLock { $0.allowance(of: .process(Self.process)) }
        return ResourceUsage(
            messages: Int.max - allowance.messages, bytes: PeerLimits.standard.queuedBytes - allowance.bytes)
    }

    @Test("messages of every kind and size come whole and in order, with nothing lost between them", .seeded)
    func kinds() async throws {
        var generator = Seed.generator()
        let kinds = (0..<400).map { _ in Int.random(in: 0..<12, using: &generator) }
        try await onBench(over: .socket) { bench in
            let (port, mine) = (try bench.port(queueLimit: 1_000), try bench.port())
            _ = try port.localPort.openSockets()
            let client = try RingClient(Self.process, at: port)
            var read = 0
            for (id, kind) in kinds.enumerated() {
                var message = MachMessage(id: Int32(id), bytes: pattern(kind < 8 ? id % 100 : 3_000))
                if kind == 8 { message.components = [] }
                if kind == 9 { message.components.append(.bytes(pattern(id))) }
                if kind == 10 { message.replyPort = mine.makeSendRight() }
                try client.ring.write(message, asks: kind == 11 ? UInt64(id + 1) : 0)
                guard id % 37 == 36 || id == kinds.count - 1 else { continue }
                while read <= id {
                    let message = try port.next()
                    #expect(message.id == Int32(read) && message.sender.processID == Self.process)
                    let parts: [[UInt8]] =
                        switch kinds[read] {
                        case ..<8: [pattern(read % 100)]
                        case 8: []
                        case 9: [pattern(3_000), pattern(read)]
                        default: [pattern(3_000)]
                        }
                    let found = message.components.map { part -> [UInt8] in
                        guard case .bytes(let bytes) = part else { return [255] }
                        return bytes
                    }
                    #expect(found == parts)
                    #expect((message.replyPort != nil) == (kinds[read] == 10))
                    #expect(message.expectsReply == (kinds[read] == 11))
                    read += 1
                }
            }
            #expect(try port.tryReceive() == nil)
            #expect(try cost(at: port) == ResourceUsage())
        }
    }

    @Test("what a batch is charged is returned to the account when its last message is received, or gone")
    func account() async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench)
            port.localPort.receiveFromSockets()
            try client.send(1...10, bytes: pattern(92))
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 10)
            #expect(
                try cost(at: port)
                    == ResourceUsage(
                        messages: 10, bytes: 1_000 + 10 * (ResourceUsage.message + ResourceUsage.component)))
            // One is retained, one goes on to another port, and is received there.
            let retained = try port.next()
            let other = try bench.port()
            try other.makeSendRight().send(port.next())
            #expect(try other.next().id == 2)
            for id in Int32(3)...9 { #expect(try port.next().id == id) }
            #expect(try cost(at: port).messages == 10)
            #expect(try port.next().id == 10)
            #expect(try cost(at: port) == ResourceUsage())
            #expect(retained.id == 1 && retained.sender.processID == Self.process)

            try client.send(1...10)
            port.localPort.receiveFromSockets()
            #expect(try port.next().id == 1)
            let accounts = try #require(port.localPort.sockets).quotas
            port.invalidate()
            #expect(accounts.withLock { $0.allowance(of: .process(Self.process)).messages } == .max)
        }
    }

    @Test(
        "an interceptor sees only what can be answered, and the rest comes in batches")
    func interceptor() async throws {
        try await onBench(over: .socket) { bench in
            let asked = Recorder<Int32>()
            let port = MachPort(queueLimit: 100, handler: nil) { message in
                asked.append(message.id)
                return message.id == 6
            }
            _ = try port.localPort.openSockets()
            let client = try RingClient(Self.process, at: port)
            port.localPort.receiveFromSockets()
            try client.send(1...4)
            try client.ring.write(MachMessage(id: 5), asks: 1)
            try client.ring.write(MachMessage(id: 6), asks: 2)
            try client.send(7...10)
            port.localPort.receiveFromSockets()
            #expect(asked.elements == [5, 6])
            #expect(try port.next().id == 1)
            // All of a batch, until the last of it is received, and the request.
            #expect(try cost(at: port).messages == 9)
            for id: Int32 in [2, 3, 4, 5, 7, 8, 9, 10] { #expect(try port.next().id == id) }
            #expect(try cost(at: port) == ResourceUsage())
            port.invalidate()
        }
    }

    @Test("of a single process no more is read than the queue has room for, also while threads send to the port")
    func queueLimit() async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench, queueLimit: 7)
            // The packet that switches to the ring is read, so that all that follows comes in batches.
            port.localPort.receiveFromSockets()
            try client.send(1...500)
            let right = port.makeSendRight()
            let threads = (0..<2).map { _ in
                runOnThread { for id in Int32(1)...500 { try right.send(MachMessage(id: -id)) } }
            }
            var (last, count) = (Int32(0), 0)
            while count < 1_500 {
                let message = try port.next()
                count += 1
                guard message.id > 0 else { continue }
                #expect(message.id == last + 1)
                last = message.id
            }
            for thread in threads { try thread.join() }
            #expect(last == 500)
            #expect(port.queueHighWaterMark <= 7)
            #expect(port.localPort.state.withLock { $0.mailbox.room } == 7)
        }
    }

    @Test("a process has its share of the queue, from its first batch on", arguments: [nil, 3])
    func share(limit: Int?) async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench, queueLimit: 12) { $0.queuedMessages = limit }
            let other = try RingClient(Self.process + 1, at: port)
            for _ in 0..<2 { port.localPort.receiveFromSockets() }
            try client.send(1...20)
            try other.send(-20...(-1))
            port.localPort.receiveFromSockets()
            let shares = limit ?? 6
            #expect(port.queueCount <= 2 * shares)
            var ids: [Int32] = []
            while let message = try port.tryReceive() { ids.append(message.id) }
            #expect(ids.filter { $0 > 0 } == Array(1...20))
            #expect(ids.filter { $0 < 0 } == Array(-20...(-1)))
            withExtendedLifetime(other) {}
        }
    }

    @Test("a process at its limit goes on when half of what it has in the queue is received", arguments: [2, 4, 5, 8])
    func resumes(limit: Int) async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench) { $0.queuedMessages = limit }
            port.localPort.receiveFromSockets()
            try client.send(1...40)
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == limit)
            for id in Int32(1)...Int32(limit - limit / 2) {
                #expect(client.connection.isPaused)
                #expect(try port.next().id == id)
            }
            #expect(!client.connection.isPaused)
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == limit)
        }
    }

    @Test("each message of a batch wakes a task that waits for one")
    func tasks() async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench)
            port.localPort.receiveFromSockets()
            port.localPort.state.withLock { state in
                for _ in 0..<3 { state.coldState.waitingTasks.append(TaskWaiter()) }
            }
            try client.send(1...2)
            port.localPort.receiveFromSockets()
            #expect(port.localPort.state.withLock { $0.coldState.waitingTasks.count } == 1)
        }
    }

    @Test("a message that is too large for the port is dropped, those beside it are not")
    func tooLarge() async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench) { $0.messageBytes = 108 }
            for id in Int32(1)...9 { try client.send(id...id, bytes: pattern(id % 3 == 0 ? 101 : 100)) }
            var ids: [Int32] = []
            while let message = try port.tryReceive() { ids.append(message.id) }
            #expect(ids == [1, 2, 4, 5, 7, 8])
            #expect(port.droppedMessageCount == 3)
        }
    }

    @Test(
        "a handler that runs the loop in mid-batch gets the rest there, and more of a process at its limit")
    func nested() async throws {
        try await onBench(over: .socket) { bench in
            let ids = Recorder<Int32>()
            let port = try bench.port { port, message in
                ids.append(message.id)
                if message.id == 2 {
                    while ids.elements.last != 12 {
                        _ = ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true)
                    }
                    ids.append(-2)
                }
                if message.id == 20 { ThreadRunLoop.current.stop() }
            }
            var limits = PeerLimits()
            limits.queuedMessages = 4
            port.setPeerLimits(limits)
            _ = try port.localPort.openSockets()
            let client = try RingClient(Self.process, at: port)
            try client.send(1...20)
            try port.schedule()
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            #expect(ids.elements == Array(1...12) + [-2] + Array(13...20))
            withExtendedLifetime(client) {}
        }
    }

    @Test("a port that ends while others read its connections keeps nothing of their batches", arguments: 0..<8)
    func ends(round: Int) async throws {
        try await onBench(over: .socket) { bench in
            let (port, client) = try pair(on: bench, queueLimit: 100)
            port.localPort.receiveFromSockets()
            try client.send(1...600)
            let accounts = try #require(port.localPort.sockets).quotas
            let readers = (0..<2).map { _ in
                runOnThread { while !port.localPort.isDead { _ = try? port.tryReceive() } }
            }
            for _ in 0..<round * 10 { _ = try? port.tryReceive() }
            port.invalidate()
            for reader in readers { try reader.join() }
            #expect(accounts.withLock { $0.allowance(of: .process(Self.process)).messages } == .max)
        }
    }
}
