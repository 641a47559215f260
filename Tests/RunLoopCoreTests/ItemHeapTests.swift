// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import RunLoopCore

@Suite struct ItemHeapTests {
    @Test(
        "items come out by key, however they went in, were changed and removed: few, some, and many", .seeded,
        arguments: [4, 14, 300] as [UInt64])
    func order(most: UInt64) {
        var random = Seed.generator(stream: most)
        var heap = ItemHeap<Int>()
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

    @Test(
        "items that come by key come out by key, also when some are put back, removed or come too late", .seeded,
        arguments: [4, 14, 300] as [Int])
    func inOrder(most: Int) {
        var random = Seed.generator(stream: UInt64(most))
        var heap = ItemHeap<Int>()
        var model: [(id: ItemID, key: Int)] = []
        var last = 0
        for _ in 0..<20_000 {
            switch Int.random(in: 0..<1000, using: &random) {
            case 0:
                guard let middle = model.indices.randomElement(using: &random) else { continue }
                let expected = model.remove(at: middle)
                let key = heap.remove(expected.id)
                #expect(key == expected.key)
            case 1:
                let late = (id: ItemID(), key: last - 5)
                if model.contains(where: { $0.key == late.key }) { continue }
                heap.add(late.id, late.key)
                model.insert(late, at: model.firstIndex { $0.key > late.key } ?? model.count)
            case 2..<20:
                var ids: [ItemID] = []
                while let entry = heap.removeFirst() { ids.append(entry.id) }
                #expect(ids == model.map(\.id))
                model = []
            case 20..<200:
                guard let entry = heap.removeFirst() else { continue }
                heap.add(entry.id, entry.key)
            case let choice where choice < 600 && model.count < most:
                last += 10
                let new = (id: ItemID(), key: last)
                heap.add(new.id, new.key)
                model.append(new)
            default:
                let id = heap.removeFirst()?.id
                let expected = model.isEmpty ? nil : model.removeFirst().id
                #expect(id == expected)
            }
            #expect(heap.count == model.count)
            #expect(heap.first?.id == model.first?.id)
            if let entry = model.randomElement(using: &random) { #expect(heap.key(of: entry.id) == entry.key) }
        }
    }

    @Test("of items that come by key, adding one and removing the first cost the same, be they few or many")
    func steps() {
        func cost(beside others: Int) -> Int {
            var heap = ItemHeap<Int>()
            for key in 0..<others { heap.add(ItemID(), key) }
            let before = heap.steps
            for key in others..<(others + 3 * others) {
                heap.add(ItemID(), key)
                let taken = heap.removeFirst()?.key
                #expect(taken == key - others)
            }
            return (heap.steps - before) / (3 * others)
        }
        #expect(cost(beside: 10) == cost(beside: 10_000))
    }

    @Test("an item knows its key and is there once")
    func identity() {
        var heap = ItemHeap<Int>()
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
