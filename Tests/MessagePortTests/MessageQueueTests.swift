// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("MessageQueue") struct MessageQueueTests {
    @Test("messages come out in the order in which they went in, across growth and wrap-around", .seeded)
    func order() {
        var queue = MessageQueue()
        var model: [Int32] = []
        var generator = Seed.generator()
        var next: Int32 = 0
        for _ in 0..<5000 {
            if Int.random(in: 0..<100, using: &generator) < 55 {
                queue.append(MachMessage(id: next))
                model.append(next)
                next += 1
            } else {
                let expected = model.isEmpty ? nil : model.removeFirst()
                let taken = queue.popFirst()?.id
                #expect(taken == expected)
            }
            let (count, isEmpty) = (queue.count, queue.isEmpty)
            #expect(count == model.count)
            #expect(isEmpty == model.isEmpty)
        }
        let rest = queue.removeAll().map(\.id)
        let isEmpty = queue.isEmpty
        #expect(rest == model && isEmpty)
        queue.append(MachMessage(id: -1))
        let last = [queue.popFirst()?.id, queue.popFirst()?.id]
        #expect(last == [-1, nil])
    }

    @Test("the oldest message of a kind is removed at any index, and the others keep their order", arguments: 0..<8)
    func removed(turned: Int) {
        var queue = MessageQueue()
        for _ in 0..<turned { queue.append(MachMessage()) }
        for _ in 0..<turned { _ = queue.popFirst() }
        for id in Int32(0)..<7 { queue.append(MachMessage(id: id)) }
        let taken = [4, 0, 4, 5].map { id in queue.removeFirst { $0.id >= id }?.id }
        #expect(taken == [4, 0, 5, 6])
        let none = queue.removeFirst { $0.id == 4 }?.id
        #expect(none == nil)
        let rest = queue.removeAll().map(\.id)
        #expect(rest == [1, 2, 3])
    }

    @Test("a message that was removed is no longer held")
    func released() {
        var queue = MessageQueue()
        let receiver = SilentReceiver()
        queue.append(receiver.question())
        queue.append(receiver.question())
        _ = queue.popFirst()
        #expect(receiver.failures == [.replyDropped])
        _ = queue.removeAll()
        #expect(receiver.failures == [.replyDropped, .replyDropped])
    }
}
