// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("MessageBatch", .leakCheck) struct MessageBatchTests {
    @Test("messages of a batch come first, count until they are dequeued, and return when the queue is used", .seeded)
    func model() {
        var queue = MessageQueue()
        var batch: MessageBatch?
        var model: [Int32] = []
        var generator = Seed.generator()
        var (next, leasedCount) = (Int32(0), 0)
        for _ in 0..<5000 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<49:
                queue.append(MachMessage(id: next))
                model.append(next)
                next += 1
            case 49..<98:
                // As a handler does: it consumes its batch, then dequeues one message under the lock, and makes the
                // next batch.
                var taken = batch?.next()
                if taken != nil {
                    leasedCount += 1
                } else {
                    taken = queue.popFirst()
                    batch = queue.leaseBatch(atMost: Int.random(in: 1..<40, using: &generator))
                }
                #expect(taken?.id == (model.isEmpty ? nil : model.removeFirst()))
            case 98:
                let taken = queue.popFirst()?.id
                #expect(taken == (model.isEmpty ? nil : model.removeFirst()))
                let left = batch?.next()?.id
                #expect(left == nil)
            default:
                let wanted = Int32.random(in: 0...max(1, next), using: &generator)
                let taken = queue.removeFirst { $0.id >= wanted }?.id
                let index = model.firstIndex { $0 >= wanted }
                #expect(taken == index.map { model.remove(at: $0) })
            }
            let (count, isEmpty) = (queue.count, queue.isEmpty)
            #expect(count == model.count)
            #expect(isEmpty == model.isEmpty)
            let isShorter = [model.count + 1, model.count].map { queue.isShorter(than: $0) }
            #expect(isShorter == [true, false])
        }
        #expect(leasedCount > 100)
        let rest = queue.removeAll().map(\.id)
        #expect(rest == model)
    }

    @Test("each message is dequeued once, in order, while the queue revokes the batch: 1,000 times")
    func race() throws {
        for _ in 0..<1000 {
            var queue = MessageQueue()
            for id in Int32(0)..<20 { queue.append(MachMessage(id: id)) }
            let made = queue.leaseBatch()
            let batch = try #require(made)
            let begins = Gate("the taker")
            let taker = runOnThread {
                begins.open()
                var taken: [Int32] = []
                while let message = batch.next() { taken.append(message.id) }
                return taken
            }
            begins.wait()
            let rest = queue.removeAll().map(\.id)
            #expect(try taker.join() + rest == Array(0..<20))
        }
    }

    @Test("batches pause when another thread has dequeued, or the handler nothing; not when it returns the rest")
    func pauses() {
        var queue = MessageQueue()
        for id in Int32(0)..<100 { queue.append(MachMessage(id: id)) }
        var batch = queue.leaseBatch()
        _ = batch?.next()
        queue.endLease()
        batch = queue.leaseBatch()
        let first = batch?.next()?.id
        #expect(first == 1)
        queue.revokeLease()
        batch = queue.leaseBatch()
        #expect(batch == nil)
        for _ in 0..<64 { _ = queue.popFirst() }
        batch = queue.leaseBatch()
        #expect(batch != nil)
        queue.endLease()
        batch = queue.leaseBatch()
        #expect(batch == nil)
        let count = queue.count
        #expect(count == 34)
    }

    @Test("a batch of some of the messages leaves the others in their position, also when it is ended or revoked")
    func some() {
        var queue = MessageQueue()
        for id in Int32(0)..<10 { queue.append(MachMessage(id: id)) }
        var batch = queue.leaseBatch(atMost: 3)
        for id in Int32(10)..<20 { queue.append(MachMessage(id: id)) }
        let first = [batch?.next()?.id, batch?.next()?.id, batch?.next()?.id, batch?.next()?.id]
        #expect(first == [0, 1, 2, nil])
        queue.endLease()
        batch = queue.leaseBatch(atMost: 3)
        let next = batch?.next()?.id
        #expect(next == 3)
        let taken = queue.popFirst()?.id  // revokes the batch
        #expect(taken == 4)
        let (left, count) = (batch?.next()?.id, queue.count)
        #expect(left == nil && count == 15)
        let rest = queue.removeAll().map(\.id)
        #expect(rest == Array(5..<20))
    }

    @Test("what was not dequeued is released with the queue and its batch; what was dequeued is no longer held")
    func released() {
        let receiver = SilentReceiver()
        var queue: MessageQueue? = MessageQueue()
        for _ in 0..<5 { queue?.append(receiver.question()) }
        var batch = queue?.leaseBatch()
        _ = batch?.next()
        #expect(receiver.failures.count == 1)
        queue = nil
        #expect(receiver.failures.count == 1)
        batch = nil
        #expect(receiver.failures.count == 5)
    }

    @Test("a sender that waits for room is served though messages are in a batch")
    func waiting() {
        var mailbox = MailboxState(limit: 4)
        for id in Int32(0)..<4 { _ = mailbox.admit(MachMessage(id: id)) }
        let batch = mailbox.leaseBatch()
        guard case .full = mailbox.admit(MachMessage()) else { return #expect(Bool(false), "It is full.") }
        let first = batch?.next()?.id
        #expect(first == 0)
        _ = mailbox.admit(MachMessage(id: 4))
        guard case .wait(let sender) = mailbox.admit(MachMessage(id: 5), waiting: .ofThread()) else {
            return #expect(Bool(false), "It is full again.")
        }
        let taken = batch?.next()?.id
        #expect(taken == nil)
        var admitted: BlockedSender?
        let second = mailbox.dequeue(admitting: &admitted)?.id
        #expect(second == 1)
        #expect(admitted === sender)
        let rest = mailbox.die()?.bounced.map(\.id)
        #expect(rest == [2, 3, 4, 5])
    }

    @Test("no batch where each dequeue counts: by policy, for senders that wait, or with replies in the queue")
    func unclaimed() {
        for policy in [QueuePolicy.dropOldest, .keepLatest] {
            var mailbox = MailboxState(limit: 4, policy: policy)
            _ = mailbox.admit(MachMessage())
            let batch = mailbox.leaseBatch()
            #expect(batch == nil)
        }
        var mailbox = MailboxState(limit: 1)
        _ = mailbox.admit(MachMessage())
        _ = mailbox.admit(MachMessage(), waiting: .ofThread())
        var batch = mailbox.leaseBatch()
        #expect(batch == nil)
        mailbox = MailboxState(limit: 4)
        var reply = MachMessage()
        reply.cameByReplyRight = true
        _ = mailbox.admit(reply)
        batch = mailbox.leaseBatch()
        #expect(batch == nil)
    }

    @Test("a port's batch is what it dequeues between two polls of its sockets; none while they wait for room")
    func sockets() async throws {
        try await onNewThread {
            let (localPort, loop) = (LocalPort(queueLimit: 40), ThreadRunLoop.current)
            _ = try localPort.openSockets()
            for id in Int32(0)..<40 { _ = localPort.admit(MachMessage(id: id)) }
            let generation = localPort.makeGeneration()
            localPort.giveOwnership(to: generation)
            let handler = ActiveHandlers.Handler(loop: loop, generation: generation)
            var batch: MessageBatch?
            #expect(localPort.dequeueMessage(for: handler, &batch)?.id == 0)
            #expect(batch?.remaining == 31)
            for id in Int32(1)...31 { #expect(batch?.next()?.id == id) }
            localPort.endHandling(generation, on: loop)
            // At this one the sockets are polled.
            #expect(localPort.dequeueMessage(for: handler, &batch)?.id == 32)
            #expect(batch == nil)
            localPort.endHandling(generation, on: loop)
            #expect(localPort.dequeueMessage(for: handler, &batch)?.id == 33)
            #expect(batch?.remaining == 6)
            for id in Int32(40)..<74 { _ = localPort.admit(MachMessage(id: id)) }
            #expect(!localPort.hasRoomForSockets())
            #expect(batch?.next() == nil)
            localPort.endHandling(generation, on: loop)
            #expect(localPort.dequeueMessage(for: handler, &batch)?.id == 34)
            #expect(batch == nil)
            localPort.endHandling(generation, on: loop)
        }
    }

    @Test("a tap that begins shows what was in the batch of the handler's thread")
    func tapped() async throws {
        try await onNewThread {
            let (localPort, loop) = (LocalPort(queueLimit: 40), ThreadRunLoop.current)
            let (near, far) = try sysPacketSocketPair()
            defer { withExtendedLifetime(far) {} }
            let connection = try SocketConnection(near, port: localPort)
            _ = try localPort.openSockets()
            localPort.state.withLock { $0.coldState.taps = [] }
            for id in Int32(0)..<3 { _ = localPort.admit(MachMessage(id: id)) }
            let generation = localPort.makeGeneration()
            localPort.giveOwnership(to: generation)
            var batch: MessageBatch?
            _ = localPort.dequeueMessage(for: ActiveHandlers.Handler(loop: loop, generation: generation), &batch)
            #expect(batch?.remaining == 2)
            #expect(localPort.addTap(connection, byteLimit: 0))
            #expect(batch?.next() == nil)
            localPort.endHandling(generation, on: loop)
        }
    }
}
