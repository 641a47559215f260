// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("MessageEnvelope", .leakCheck) struct MessageEnvelopeTests {
    @Test("copies of a message are independent of each other, whatever is changed in one")
    func copies() {
        let (first, second) = (MachPort(), MachPort())
        let original = MachMessage(id: 1, bytes: [1], replyPort: first.makeSendRight())
        var copy = original
        #expect(copy.replyPort == first.makeSendRight())
        copy.replyPort = second.makeSendRight()
        #expect(original.replyPort == first.makeSendRight())
        #expect(copy.replyPort == second.makeSendRight())
        copy.remoteSender = .current
        copy.replyPort = nil
        #expect(original.replyPort == first.makeSendRight() && original.remoteSender == nil)
        #expect(copy.replyPort == nil && copy.remoteSender == .current)
    }

    @Test(
        "what a message is charged to its sender's account is returned once, whatever becomes of its copies",
        arguments: [false, true])
    func charge(isDropped: Bool) {
        let (quotas, owner) = (PeerQuotas(), PeerID.process(1))
        func isSettled() -> Bool { quotas.withLock { $0.isEmpty } }
        var original = MessageEnvelope()
        original.stamp(
            remoteSender: .current, charge: quotas.charge(owner, forUnread: ResourceUsage(bytes: 5)), replyTarget: nil)
        #expect(original.isCharged && !isSettled())
        var copy = original
        copy.remoteSender = nil
        // The copy has an object of its own now, and the charge stays where it was.
        #expect(original.isCharged && !copy.isCharged && !isSettled())
        copy = original
        copy.dropCharge()
        #expect(original.isCharged && !copy.isCharged && !isSettled())
        if isDropped { original.dropCharge() } else { original = MessageEnvelope() }
        #expect(!original.isCharged && isSettled())
        copy = MessageEnvelope()
        #expect(isSettled())
    }

    @Test(
        "the messages of a batch are charged together, until each of them is received, or gone",
        arguments: [[true, true, true], [true, false, true], [false, true, false], [false, false, false]])
    func batch(areTaken: [Bool]) {
        let (quotas, owner) = (PeerQuotas(), PeerID.process(1))
        var messages: [MachMessage?] = []
        do {
            let cost = ResourceUsage(messages: 3, bytes: 30)
            quotas.withLock { $0.charge(cost, by: owner) }
            let envelope = MessageEnvelope(ofBatch: 3, from: .current, PeerCharge(quotas, owner, cost))
            for id in 0..<Int32(3) { messages.append(MachMessage(ofBatch: envelope, id: id, .bytes([]))) }
        }
        var retained: [MachMessage] = []
        for (index, isTaken) in areTaken.enumerated() {
            #expect(quotas.withLock { !$0.isEmpty })
            guard var message = messages[index].take(), isTaken else { continue }
            message.noteDequeued()
            #expect(message.remoteSender == .current)
            // It counts for nothing any more, wherever it ends up.
            var copy = message
            copy.noteDequeued()
            copy.replyPort = nil
            #expect(copy.remoteSender == .current)
            if areTaken.allSatisfy(\.self) { retained.append(message) }
        }
        #expect(quotas.withLock { $0.isEmpty })
    }

    @Test("a message without an envelope is small: two words beside its part")
    func size() {
        var envelope = MessageEnvelope()
        #expect(envelope.isEmpty)
        envelope.replyPort = nil
        envelope.dropCharge()
        #expect(envelope.isEmpty)
        #expect(MemoryLayout<MessageEnvelope>.size == MemoryLayout<Int>.size)
        #expect(
            MemoryLayout<MachMessage>.size <= MemoryLayout<MachMessage.Component>.stride + 2 * MemoryLayout<Int>.size)
    }

    @Test("threads make messages of no bytes concurrently, and each has its initializer called")
    func noBytes() async throws {
        // All empty lists share their storage: to write it would be a race, which the thread sanitizer sees.
        let calls = Counter("initializers")
        let threads = (0..<4).map { _ in
            runOnThread {
                for _ in 0..<200 {
                    let message = MachMessage(byteCapacity: 0) { _ in calls.increment() }
                    #expect(message.bytes.isEmpty)
                }
            }
        }
        for thread in threads { try await thread.join() }
        #expect(calls.value == 800)
    }
}
