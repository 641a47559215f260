// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("messages as a sequence", .tasks) struct SequenceContract {
    /// Iterates in a task.
    private func consume(_ port: MachPort, _ ids: Recorder<Int32>, _ ended: Counter) -> Task<Void, Never> {
        Task {
            do {
                for try await message in port.messages { ids.append(message.id) }
            } catch {
                Issue.record(error)
            }
            ended.increment()
        }
    }

    @Test("messages come in order, and the sequence ends with the port", arguments: TestTransport.withName)
    func order(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port(queueLimit: 4)
            let sender = try bench.farSender(to: port)
            _ = consume(port, ids, ended)
            try sender.beginSending(500)
            #expect(ids.waitUntilCount(500) == Array(0..<500))
            port.invalidate()
            ended.waitUntilCount(1)
        }
    }

    @Test("a message that comes long after the task began to wait is received", arguments: TestTransport.withName)
    func sleeping(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port()
            _ = consume(port, ids, ended)
            let sender = try bench.farSender(to: port)
            for id in Int32(0)..<20 {
                while !port.localPort.hasWaitingTask { yieldThread() }
                try sender.send(MachMessage(id: id))
                ids.waitUntilCount(Int(id) + 1)
            }
            port.invalidate()
            ended.waitUntilCount(1)
        }
    }

    @Test("a port that gets its sockets while a task waits is served through them")
    func laterSockets() async throws {
        try await onBench(over: .socket) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = MachPort()
            _ = consume(port, ids, ended)
            while !port.localPort.hasWaitingTask { yieldThread() }
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 5))
            #expect(ids.waitUntilCount(1) == [5])
            port.invalidate()
            ended.waitUntilCount(1)
        }
    }

    @Test("several tasks share the messages, each goes to one", arguments: TestTransport.withName)
    func shared(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            for _ in 0..<4 { _ = consume(port, ids, ended) }
            try sender.beginSending(500)
            #expect(ids.waitUntilCount(500).sorted() == Array(0..<500))
            port.invalidate()
            ended.waitUntilCount(4)
        }
    }

    @Test("tasks that are cancelled while messages come lose none", arguments: TestTransport.withName)
    func cancellation(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            try sender.beginSending(400)
            var started = 0
            while ids.count < 300 {
                let tasks = (0..<3).map { _ in consume(port, ids, ended) }
                started += tasks.count
                yieldThread()
                for task in tasks { task.cancel() }
                ended.waitUntilCount(started)
            }
            _ = consume(port, ids, ended)
            #expect(ids.waitUntilCount(400).sorted() == Array(0..<400))
            #expect(try sender.lines(1) == ["sent"])
            port.invalidate()
            ended.waitUntilCount(started + 1)
            #expect(ids.count == 400)
        }
    }

    @Test("a cancelled task leaves the message in the queue", arguments: TestTransport.withName)
    func cancelledLeaves(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            let task = consume(port, ids, ended)
            while !port.localPort.hasWaitingTask { yieldThread() }
            task.cancel()
            ended.waitUntilCount(1)
            try sender.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
            #expect(ids.count == 0)
            #expect(!port.localPort.hasWaitingTask)
        }
    }

    @Test("a task is woken for a sender that a change of the queue lets in", arguments: [false, true])
    func admitted(byLimit: Bool) async throws {
        try await onBench(over: .memory) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 0))
            let sender = runOnThread { try right.send(MachMessage(id: 1)) }
            port.localPort.waitForSenders(1)
            // The slot is reserved for a message in a socket.
            var admitted: BlockedSender?
            let taken = port.localPort.state.withLock {
                $0.mailbox.dequeue(reservingSlot: true, admitting: &admitted)?.id
            }
            #expect(taken == 0)
            #expect(admitted == nil)
            _ = consume(port, ids, ended)
            while !port.localPort.hasWaitingTask { yieldThread() }
            if byLimit { port.setQueueLimit(2) } else { port.localPort.change { $0.endSlotReservation() } }
            #expect(ids.waitUntilCount(1) == [1])
            try sender.join()
            port.invalidate()
            ended.waitUntilCount(1)
        }
    }

    @Test("a sequence of a port that is invalid is empty")
    func invalid() async throws {
        try await onBench(over: .memory) { bench in
            let (ids, ended) = (Recorder<Int32>(), Counter("ended sequences"))
            let port = try bench.port()
            port.invalidate()
            _ = consume(port, ids, ended)
            ended.waitUntilCount(1)
            #expect(ids.count == 0)
        }
    }
}
