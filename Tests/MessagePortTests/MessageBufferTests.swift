// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("MessageBuffer") struct MessageBufferTests {
    @Test("messages keep their order when the buffer grows, moves to its beginning, and is moved as a whole", .seeded)
    func model() {
        var row = MessageBuffer()
        var model: [Int32] = []
        var generator = Seed.generator()
        for id in Int32(0)..<5000 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<50:
                row.append(MachMessage(id: id))
                model.append(id)
            case 50..<95:
                let taken = row.popFirst()?.id
                #expect(taken == (model.isEmpty ? nil : model.removeFirst()))
            case 95..<98:
                let wanted = Int32.random(in: 0...id, using: &generator)
                let taken = row.removeFirst { $0.id >= wanted }?.id
                #expect(taken == model.firstIndex { $0 >= wanted }.map { model.remove(at: $0) })
            case 98:
                var others = MessageBuffer()
                let added = (0..<Int32.random(in: 0...20, using: &generator)).map { id * 100 + $0 }
                for id in added { others.append(MachMessage(id: id)) }
                row.append(allOf: &others)
                let isEmpty = others.isEmpty
                #expect(isEmpty)
                model += added
            default:
                let moved = row.moveAll()
                let wasLeft = row.count
                #expect(wasLeft == 0)
                row = moved
            }
            let (count, isEmpty) = (row.count, row.isEmpty)
            #expect(count == model.count && isEmpty == model.isEmpty)
        }
    }

    @Test("a buffer absorbs the messages of another, however many are in the two", arguments: 0..<5, 0..<9)
    func appendAll(count: Int32, added: Int32) {
        var row = MessageBuffer()
        var others = MessageBuffer()
        // Room at the end, and at the beginning.
        for id in -3..<count { row.append(MachMessage(id: id)) }
        for _ in 0..<3 { _ = row.popFirst() }
        for id in count..<count + added { others.append(MachMessage(id: id)) }
        row.append(allOf: &others)
        let isEmpty = others.isEmpty
        #expect(isEmpty)
        var ids: [Int32] = []
        while let message = row.popFirst() { ids.append(message.id) }
        #expect(ids == Array(0..<count + added))
    }

    @Test("what is in a buffer is released with it, and what was moved out of it is not")
    func released() {
        let receiver = SilentReceiver()
        var row = MessageBuffer()
        for _ in 0..<5 { row.append(receiver.question()) }
        _ = row.popFirst()
        #expect(receiver.failures.count == 1)
        var moved = row.moveAll()
        row = MessageBuffer()
        #expect(receiver.failures.count == 1)
        _ = moved.popFirst()
        #expect(receiver.failures.count == 2)
        moved = MessageBuffer()
        #expect(receiver.failures.count == 5)
    }
}
