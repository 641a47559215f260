// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import RunLoopCore

@Suite struct IndexedHeapTests {
    @Test(
        "items come out by key, however they went in, were changed and taken out: few, some, and many", .seeded,
        arguments: [4, 14, 300] as [UInt64])
    func order(most: UInt64) {
        var random = Seed.generator(stream: most)
        var heap = IndexedHeap<Int>()
        var model: [ItemID: Int] = [:]
        for _ in 0..<5000 {
            let id = ItemID(rawValue: .random(in: 1...most, using: &random))
            if Int.random(in: 0..<3, using: &random) == 0 {
                let key = heap.remove(id)
                let expected = model.removeValue(forKey: id)
                #expect(key == expected)
            } else {
                let key = Int.random(in: 0..<1000, using: &random)
                heap.set(id, key)
                model[id] = key
            }
            #expect(heap.count == model.count)
            #expect(heap.contains(id) == (model[id] != nil))
            #expect(heap.first?.key == model.values.min())
        }
        #expect(heap.entries(notAfter: 500).map(\.id).sorted() == model.filter { $0.value <= 500 }.keys.sorted())
        var keys: [Int] = []
        while let entry = heap.removeFirst() {
            #expect(model[entry.id] == entry.key)
            keys.append(entry.key)
        }
        #expect(keys == model.values.sorted())
        #expect(heap.isEmpty)
    }

    @Test("an item knows its key and is there once")
    func identity() {
        var heap = IndexedHeap<Int>()
        let id = ItemID()
        heap.set(id, 5)
        heap.set(id, 3)
        #expect(heap.count == 1)
        #expect(heap.key(of: id) == 3)
        #expect(heap.contains(id))
        #expect(!heap.contains(ItemID()))
        let key = heap.remove(ItemID())
        #expect(key == nil)
    }
}
