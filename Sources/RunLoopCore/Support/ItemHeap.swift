// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A heap of items, smallest key first, that can find each item.
struct ItemHeap<Key: Comparable & Sendable>: Sendable {
    typealias Entry = AddressableHeap<ItemID, Key>.Entry

    /// The positions of the items: built when there are many, and empty again when there is no item.
    private struct Table: HeapPositions, Sendable {
        var positions: [ItemID: Int] = [:]

        mutating func note(_ position: Int, of id: ItemID) {
            if !positions.isEmpty { positions[id] = position }
        }
    }

    private var heap = AddressableHeap<ItemID, Key>()
    private var table = Table()

    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }
    var first: Entry? { heap.first }
    /// How many entries were compared or examined so far, without the linear searches: tests measure costs by it.
    var steps: Int { heap.steps }

    func contains(_ id: ItemID) -> Bool {
        position(of: id) != nil
    }

    func key(of id: ItemID) -> Key? {
        position(of: id).map { heap[$0].key }
    }

    private func position(of id: ItemID) -> Int? {
        if !table.positions.isEmpty { return table.positions[id] }
        var index = heap.head
        while index < heap.entries.count {
            if heap.entries[index].id == id { return heap.position(ofEntry: index) }
            index += 1
        }
        return nil
    }

    /// Adds an item, or changes its key.
    mutating func set(_ id: ItemID, _ key: Key) {
        if let position = position(of: id) { heap.setKey(key, at: position, &table) } else { add(id, key) }
    }

    /// Adds an item that is not in the heap.
    mutating func add(_ id: ItemID, _ key: Key) {
        heap.add(id, key, &table)
        guard table.positions.isEmpty, heap.count > Tuning.fewItems else { return }
        for index in heap.head..<heap.entries.count {
            table.positions[heap.entries[index].id] = heap.position(ofEntry: index)
        }
    }

    /// - Returns: the item's key, nil when it was not in the heap.
    @discardableResult
    mutating func remove(_ id: ItemID) -> Key? {
        guard let position = position(of: id) else { return nil }
        let key = heap[position].key
        heap.remove(at: position, &table)
        forget(id)
        return key
    }

    mutating func removeFirst() -> Entry? {
        guard let entry = heap.removeFirst(&table) else { return nil }
        forget(entry.id)
        return entry
    }

    private mutating func forget(_ id: ItemID) {
        if !table.positions.isEmpty { table.positions[id] = nil }
    }

    /// The items whose key is not greater than `limit`, in no particular order, in time proportional to their number.
    mutating func entries(notAfter limit: Key) -> [Entry] {
        heap.entries(notAfter: limit)
    }
}
