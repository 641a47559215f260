// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A binary heap of items, smallest key first, that knows where each item is: adding, removing and changing the key of
/// any item cost O(log n), looking at the first costs O(1).
///
/// Items that come in the order of their keys lie in that order, which is a heap too: then adding one and taking the
/// first cost O(1). An item that comes, or goes, elsewhere ends that, until the heap is empty.
///
/// A few items are looked for one by one, which is quicker than a table of where they are.
struct IndexedHeap<Key: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var id: ItemID
        var key: Key
    }

    private static var fewest: Int { 8 }

    /// The heap begins at `head`: before it are the places of items that were taken while all lay in order.
    private var entries: [Entry] = []
    private var head = 0
    private var isSorted = true
    /// Where the items are, if `shift` is taken away: made when there are many, and empty again when there is none.
    private var positions: [ItemID: Int] = [:]
    /// How many places at the beginning were given up since.
    private var shift = 0
    /// How many entries were compared or looked at so far, without the search among a few: what tests measure costs by.
    private(set) var steps = 0

    var isEmpty: Bool { head == entries.count }
    var count: Int { entries.count - head }
    var first: Entry? { isEmpty ? nil : entries[head] }

    func contains(_ id: ItemID) -> Bool {
        position(of: id) != nil
    }

    func key(of id: ItemID) -> Key? {
        position(of: id).map { entries[$0].key }
    }

    private func position(of id: ItemID) -> Int? {
        if !positions.isEmpty { return positions[id].map { $0 - shift } }
        var position = head
        while position < entries.count {
            if entries[position].id == id { return position }
            position += 1
        }
        return nil
    }

    /// Puts an item in, or gives it another key.
    mutating func set(_ id: ItemID, _ key: Key) {
        if let position = position(of: id) {
            entries[position].key = key
            isSorted = false
            restoreOrder(around: position)
        } else {
            add(id, key)
        }
    }

    /// Puts an item in that is not there.
    mutating func add(_ id: ItemID, _ key: Key) {
        steps += 1
        if isSorted, head > 0, head < entries.count, key < entries[head].key {
            head -= 1
            entries[head] = Entry(id: id, key: key)
            if !positions.isEmpty { positions[id] = head + shift }
            return
        }
        if isSorted, let last = entries.last, head < entries.count, key < last.key { isSorted = false }
        entries.append(Entry(id: id, key: key))
        if !positions.isEmpty {
            positions[id] = entries.count - 1 + shift
        } else if count > Self.fewest {
            for position in head..<entries.count { positions[entries[position].id] = position + shift }
        }
        if !isSorted { moveUp(from: entries.count - 1) }
    }

    /// Takes an item out.
    ///
    /// - Returns: its key, nil when it was not there.
    @discardableResult
    mutating func remove(_ id: ItemID) -> Key? {
        guard let position = position(of: id) else { return nil }
        let key = entries[position].key
        remove(at: position)
        return key
    }

    /// Takes the item with the smallest key out.
    mutating func removeFirst() -> Entry? {
        guard let entry = first else { return nil }
        remove(at: head)
        return entry
    }

    private mutating func remove(at position: Int) {
        let hasTable = !positions.isEmpty
        if hasTable { positions[entries[position].id] = nil }
        if isSorted, position == head, count > 1 {
            head += 1
            giveUpPlaces()
            return
        }
        let last = entries.removeLast()
        if position < entries.count {
            isSorted = false
            entries[position] = last
            if hasTable { positions[last.id] = position + shift }
            restoreOrder(around: position)
        }
        giveUpPlaces()
    }

    /// Gives up the places before the first item: when there is none, and when they are most of all.
    private mutating func giveUpPlaces() {
        if isEmpty {
            if head > 0 { entries.removeAll(keepingCapacity: true) }
            (head, shift, isSorted) = (0, 0, true)
        } else if head > Self.fewest, head > entries.count / 2 {
            entries.removeSubrange(0..<head)
            shift += head
            head = 0
        }
    }

    /// The items whose key is not greater than `limit`, in no particular order, in time proportional to their number.
    mutating func entries(notAfter limit: Key) -> [Entry] {
        var found: [Entry] = []
        var unseen = [0]
        while let offset = unseen.popLast() {
            steps += 1
            guard offset < count, entries[head + offset].key <= limit else { continue }
            found.append(entries[head + offset])
            unseen += [2 * offset + 1, 2 * offset + 2]
        }
        return found
    }

    private mutating func restoreOrder(around position: Int) {
        if moveUp(from: position) == position { moveDown(from: position) }
    }

    @discardableResult
    private mutating func moveUp(from start: Int) -> Int {
        var position = start
        while position > head {
            steps += 1
            let parent = head + (position - head - 1) / 2
            guard entries[position].key < entries[parent].key else { break }
            exchange(position, parent)
            position = parent
        }
        return position
    }

    private mutating func moveDown(from start: Int) {
        var position = start
        while true {
            var child = head + 2 * (position - head) + 1
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
        positions[entries[one].id] = one + shift
        positions[entries[other].id] = other + shift
    }
}
