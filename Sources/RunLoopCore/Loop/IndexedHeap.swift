// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A binary heap of items, smallest key first, that knows where each item is: adding, removing and changing the key of
/// any item cost O(log n), looking at the first costs O(1).
///
/// A few items are looked for one by one, which is quicker than a table of where they are.
struct IndexedHeap<Key: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var id: ItemID
        var key: Key
    }

    private static var fewest: Int { 8 }

    private var entries: [Entry] = []
    /// Where the items are: made when there are many, and empty again when there is none.
    private var positions: [ItemID: Int] = [:]
    /// How many entries were compared or looked at so far, without the search among a few: what tests measure costs by.
    private(set) var steps = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    var first: Entry? { entries.first }

    func contains(_ id: ItemID) -> Bool {
        position(of: id) != nil
    }

    func key(of id: ItemID) -> Key? {
        position(of: id).map { entries[$0].key }
    }

    private func position(of id: ItemID) -> Int? {
        positions.isEmpty ? entries.firstIndex { $0.id == id } : positions[id]
    }

    /// Puts an item in, or gives it another key.
    mutating func set(_ id: ItemID, _ key: Key) {
        if let position = position(of: id) {
            entries[position].key = key
            restoreOrder(around: position)
        } else {
            entries.append(Entry(id: id, key: key))
            if !positions.isEmpty {
                positions[id] = entries.count - 1
            } else if entries.count > Self.fewest {
                for (position, entry) in entries.enumerated() { positions[entry.id] = position }
            }
            moveUp(from: entries.count - 1)
        }
    }

    /// Takes an item out.
    ///
    /// - Returns: its key, nil when it was not there.
    @discardableResult
    mutating func remove(_ id: ItemID) -> Key? {
        guard let position = position(of: id) else { return nil }
        let key = entries[position].key
        let last = entries.removeLast()
        let hasTable = !positions.isEmpty
        if hasTable { positions[id] = nil }
        if position < entries.count {
            entries[position] = last
            if hasTable { positions[last.id] = position }
            restoreOrder(around: position)
        }
        return key
    }

    /// Takes the item with the smallest key out.
    mutating func removeFirst() -> Entry? {
        guard let entry = entries.first else { return nil }
        remove(entry.id)
        return entry
    }

    /// The items whose key is not greater than `limit`, in no particular order, in time proportional to their number.
    mutating func entries(notAfter limit: Key) -> [Entry] {
        var found: [Entry] = []
        var unseen = [0]
        while let position = unseen.popLast() {
            steps += 1
            guard position < entries.count, entries[position].key <= limit else { continue }
            found.append(entries[position])
            unseen += [2 * position + 1, 2 * position + 2]
        }
        return found
    }

    private mutating func restoreOrder(around position: Int) {
        if moveUp(from: position) == position { moveDown(from: position) }
    }

    @discardableResult
    private mutating func moveUp(from start: Int) -> Int {
        var position = start
        while position > 0 {
            steps += 1
            guard entries[position].key < entries[(position - 1) / 2].key else { break }
            exchange(position, (position - 1) / 2)
            position = (position - 1) / 2
        }
        return position
    }

    private mutating func moveDown(from start: Int) {
        var position = start
        while true {
            var child = 2 * position + 1
            steps += 1
            if child + 1 < entries.count, entries[child + 1].key < entries[child].key { child += 1 }
            guard child < entries.count, entries[child].key < entries[position].key else { return }
            exchange(position, child)
            position = child
        }
    }

    private mutating func exchange(_ one: Int, _ other: Int) {
        entries.swapAt(one, other)
        if positions.isEmpty { return }
        positions[entries[one].id] = one
        positions[entries[other].id] = other
    }
}
