// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("MessageBatch", .census) struct MessageBatchTests {
    @Test("messages of a batch come first, count until they are dequeued, and return when the queue is used", .seeded)
    func model() {
        var queue = MessageQueue()
        var claim: MessageBatch?
        var model: [Int32] = []
        var generator = Seed.generator()
        var (next, claimedCount) = (Int32(0), 0)
        for _ in 0..<5000 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<49:
                queue.append(MachMessage(id: next))
                model.append(next)
                next += 1
            case 49..<98:
                // As a handler does: it consumes its batch, then dequeues one message under the lock, and makes the
                // next batch.
                var taken = claim?.next()
                if taken != nil {
                    claimedCount += 1
                } else {
                    taken = queue.popFirst()
                    claim = queue.makeClaim(atMost: Int.random(in: 1..<40, using: &generator))
                }
                #expect(taken?.id == (model.isEmpty ? nil : model.removeFirst()))
            case 98:
                let taken = queue.popFirst()?.id
                #expect(taken == (model.isEmpty ? nil : model.removeFirst()))
                let left = claim?.next()?.id
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
        #expect(claimedCount > 100)
        let rest = queue.removeAll().map(\.id)
        #expect(rest == model)
    }

    @Test("each message is dequeued once, in order, while the queue revokes the batch: 1,000 times")
    func race() throws {
        for _ in 0..<1000 {
            var queue = MessageQueue()
            for id in Int32(0)..<20 { queue.append(MachMessage(id: id)) }
            let made = queue.makeClaim()
            let claim = try #require(made)
            let begins = Gate("the taker")
            let taker = runOnThread {
                begins.open()
                var taken: [Int32] = []
                while let message = claim.next() { taken.append(message.id) }
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
        var claim = queue.makeClaim()
        _ = claim?.next()
        queue.endClaim()
        claim = queue.makeClaim()
        let first = claim?.next()?.id
        #expect(first == 1)
        queue.reclaim()
        claim = queue.makeClaim()
        #expect(claim == nil)
        for _ in 0..<64 { _ = queue.popFirst() }
        claim = queue.makeClaim()
        #expect(claim != nil)
        queue.endClaim()
        claim = queue.makeClaim()
        #expect(claim == nil)
        let count = queue.count
        #expect(count == 34)
    }

    @Test("a batch of some of the messages leaves the others in their position, also when it is ended or revoked")
    func some() {
        var queue = MessageQueue()
        for id in Int32(0)..<10 { queue.append(MachMessage(id: id)) }
        var claim = queue.makeClaim(atMost: 3)
        for id in Int32(10)..<20 { queue.append(MachMessage(id: id)) }
        let first = [claim?.next()?.id, claim?.next()?.id, claim?.next()?.id, claim?.next()?.id]
        #expect(first == [0, 1, 2, nil])
        queue.endClaim()
        claim = queue.makeClaim(atMost: 3)
        let next = claim?.next()?.id
        #expect(next == 3)
        let taken = queue.popFirst()?.id  // revokes the batch
        #expect(taken == 4)
        let (left, count) = (claim?.next()?.id, queue.count)
        #expect(left == nil && count == 15)
        let rest = queue.removeAll().map(\.id)
        #expect(rest == Array(5..<20))
    }

    @Test("what was not dequeued is released with the queue and its batch; what was dequeued is no longer held")
    func released() {
        let receiver = SilentReceiver()
        var queue: MessageQueue? = MessageQueue()
        for _ in 0..<5 { queue?.append(receiver.question()) }
        var claim = queue?.makeClaim()
        _ = claim?.next()
        #expect(receiver.failures.count == 1)
        queue = nil
        #expect(receiver.failures.count == 1)
        claim = nil
        #expect(receiver.failures.count == 5)
    }

    @Test("a sender that waits for room is served though messages are in a batch")
    func waiting() {
        var mailbox = MailboxState(limit: 4)
        for id in Int32(0)..<4 { _ = mailbox.admit(MachMessage(id: id)) }
        let claim = mailbox.makeClaim()
        guard case .full = mailbox.admit(MachMessage()) else { return #expect(Bool(false), "It is full.") }
        let first = claim?.next()?.id
        #expect(first == 0)
        _ = mailbox.admit(MachMessage(id: 4))
        guard case .wait(let sender) = mailbox.admit(MachMessage(id: 5), waiting: .thread) else {
            return #expect(Bool(false), "It is full again.")
        }
        let taken = claim?.next()?.id
        #expect(taken == nil)
        var letIn: BlockedSender?
        let second = mailbox.take(lettingIn: &letIn)?.id
        #expect(second == 1)
        #expect(letIn === sender)
        let rest = mailbox.die()?.bounced.map(\.id)
        #expect(rest == [2, 3, 4, 5])
    }

    @Test("no batch where each dequeue counts: by policy, for senders that wait, or with replies in the queue")
    func unclaimed() {
        for policy in [QueuePolicy.dropOldest, .keepLatest] {
            var mailbox = MailboxState(limit: 4, policy: policy)
            _ = mailbox.admit(MachMessage())
            let claim = mailbox.makeClaim()
            #expect(claim == nil)
        }
        var mailbox = MailboxState(limit: 1)
        _ = mailbox.admit(MachMessage())
        _ = mailbox.admit(MachMessage(), waiting: .thread)
        var claim = mailbox.makeClaim()
        #expect(claim == nil)
        mailbox = MailboxState(limit: 4)
        var reply = MachMessage()
        reply.cameByReplyRight = true
        _ = mailbox.admit(reply)
        claim = mailbox.makeClaim()
        #expect(claim == nil)
    }

    @Test("a port's batch is what it dequeues between two polls of its sockets; none while they wait for room")
    func sockets() async throws {
        try await onNewThread {
            let (core, loop) = (LocalPort(queueLimit: 40), ThreadRunLoop.current)
            _ = try core.openSockets()
            for id in Int32(0)..<40 { _ = core.admit(MachMessage(id: id)) }
            let turn = core.makeTurnNumber()
            core.giveTurn(to: turn)
            let handler = HandlersUnderWay.Handler(loop: loop, turn: turn)
            var claim: MessageBatch?
            #expect(core.takeQueued(for: handler, &claim)?.id == 0)
            #expect(claim?.remaining == 31)
            for id in Int32(1)...31 { #expect(claim?.next()?.id == id) }
            core.endTurn(turn, on: loop)
            // At this one the sockets are polled.
            #expect(core.takeQueued(for: handler, &claim)?.id == 32)
            #expect(claim == nil)
            core.endTurn(turn, on: loop)
            #expect(core.takeQueued(for: handler, &claim)?.id == 33)
            #expect(claim?.remaining == 6)
            for id in Int32(40)..<74 { _ = core.admit(MachMessage(id: id)) }
            #expect(!core.hasRoomForSockets())
            #expect(claim?.next() == nil)
            core.endTurn(turn, on: loop)
            #expect(core.takeQueued(for: handler, &claim)?.id == 34)
            #expect(claim == nil)
            core.endTurn(turn, on: loop)
        }
    }

    @Test("a watcher that begins sees what was in the batch of the handler's thread")
    func watched() async throws {
        try await onNewThread {
            let (core, loop) = (LocalPort(queueLimit: 40), ThreadRunLoop.current)
            let (near, far) = try sysPacketSocketPair()
            defer { withExtendedLifetime(far) {} }
            let connection = try SocketConnection(near, port: core)
            _ = try core.openSockets()
            core.state.withLock { $0.extras.allowsWatching = true }
            for id in Int32(0)..<3 { _ = core.admit(MachMessage(id: id)) }
            let turn = core.makeTurnNumber()
            core.giveTurn(to: turn)
            var claim: MessageBatch?
            _ = core.takeQueued(for: HandlersUnderWay.Handler(loop: loop, turn: turn), &claim)
            #expect(claim?.remaining == 2)
            #expect(core.addWatcher(connection, byteLimit: 0))
            #expect(claim?.next() == nil)
            core.endTurn(turn, on: loop)
        }
    }
}
