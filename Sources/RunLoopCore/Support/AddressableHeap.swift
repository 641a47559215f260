// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Receives each item's position in a heap.
protocol HeapPositions<ID> {
    associatedtype ID
    /// An item was added at, or moved to, a position.
    mutating func note(_ position: Int, of id: ID)
}

/// A binary heap of items, smallest key first, that reports the position of each item, so that any item may be removed:
/// adding, removing and changing the key of any item cost O(log n), reading the first costs O(1).
///
/// Items that are added in the order of their keys are stored in that order, which is a heap too: then adding one and
/// removing the first cost O(1). An item that is added or removed elsewhere ends that, until the heap is empty.
struct AddressableHeap<ID: Sendable, Key: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var id: ID
        var key: Key
    }

    /// Positions are numbered on up to this limit, and then renumbered: each is stored in four bytes.
    private static var positionLimit: Int { 1 << 30 }

    /// The heap begins at `head`: before it are the slots of items that were removed while all were in order.
    private(set) var entries: [Entry] = []
    private(set) var head = 0
    private var isSorted = true
    /// How many slots at the beginning were dropped since the heap was empty.
    private var shift = 0
    /// How many entries were compared or examined so far: tests measure costs by it.
    private(set) var steps = 0

    var isEmpty: Bool { head == entries.count }
    var count: Int { entries.count - head }
    var first: Entry? { isEmpty ? nil : entries[head] }

    /// The item that will be removed after `distance` others, if nothing changes meanwhile; nil where that is not
    /// known.
    func upcoming(_ distance: Int) -> ID? {
        isSorted && distance < count ? entries[head + distance].id : nil
    }

    subscript(position: Int) -> Entry { entries[position - shift] }

    func position(ofEntry index: Int) -> Int { index + shift }

    /// Adds an item that is not in the heap.
    mutating func add(_ id: ID, _ key: Key, _ positions: inout some HeapPositions<ID>) {
        steps += 1
        if isSorted, head > 0, head < entries.count, key < entries[head].key {
            head -= 1
            entries[head] = Entry(id: id, key: key)
            positions.note(head + shift, of: id)
            return
        }
        if isSorted, head < entries.count, key < entries[entries.count - 1].key { isSorted = false }
        entries.append(Entry(id: id, key: key))
        positions.note(entries.count - 1 + shift, of: id)
        if !isSorted { moveUp(from: entries.count - 1, &positions) }
    }

    mutating func setKey(_ key: Key, at position: Int, _ positions: inout some HeapPositions<ID>) {
        entries[position - shift].key = key
        isSorted = false
        restoreOrder(around: position - shift, &positions)
    }

    /// Removes the item with the smallest key. Its position is not updated.
    mutating func removeFirst(_ positions: inout some HeapPositions<ID>) -> Entry? {
        guard let entry = first else { return nil }
        remove(atIndex: head, &positions)
        return entry
    }

    /// Removes the item at a position. Its position is not updated.
    mutating func remove(at position: Int, _ positions: inout some HeapPositions<ID>) {
        remove(atIndex: position - shift, &positions)
    }

    private mutating func remove(atIndex index: Int, _ positions: inout some HeapPositions<ID>) {
        if isSorted, index == head, count > 1 {
            head += 1
            dropLeadingSlots(&positions)
            return
        }
        let last = entries.removeLast()
        if index < entries.count {
            isSorted = false
            entries[index] = last
            positions.note(index + shift, of: last.id)
            restoreOrder(around: index, &positions)
        }
        dropLeadingSlots(&positions)
    }

    /// Drops the slots before the first item: when there is no item, and when they are more than half.
    private mutating func dropLeadingSlots(_ positions: inout some HeapPositions<ID>) {
        if isEmpty {
            if head > 0 { entries.removeAll(keepingCapacity: true) }
            (head, shift, isSorted) = (0, 0, true)
        } else if head > Tuning.fewItems, head > entries.count / 2 {
            entries.removeSubrange(0..<head)
            shift += head
            head = 0
            if shift > Self.positionLimit {
                shift = 0
                for index in entries.indices { positions.note(index, of: entries[index].id) }
            }
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

    private mutating func restoreOrder(around index: Int, _ positions: inout some HeapPositions<ID>) {
        if moveUp(from: index, &positions) == index { moveDown(from: index, &positions) }
    }

    // An item that moves is stored once, in its last slot; the others move up or down by one.

    @discardableResult
    private mutating func moveUp(from start: Int, _ positions: inout some HeapPositions<ID>) -> Int {
        let moved = entries[start]
        var index = start
        while index > head {
            steps += 1
            let parent = head + (index - head - 1) / 2
            guard moved.key < entries[parent].key else { break }
            store(entries[parent], at: index, &positions)
            index = parent
        }
        if index != start { store(moved, at: index, &positions) }
        return index
    }

    private mutating func moveDown(from start: Int, _ positions: inout some HeapPositions<ID>) {
        let moved = entries[start]
        var index = start
        while true {
            var child = head + 2 * (index - head) + 1
            steps += 1
            if child + 1 < entries.count, entries[child + 1].key < entries[child].key { child += 1 }
            guard child < entries.count, entries[child].key < moved.key else { break }
            store(entries[child], at: index, &positions)
            index = child
        }
        if index != start { store(moved, at: index, &positions) }
    }

    private mutating func store(_ entry: Entry, at index: Int, _ positions: inout some HeapPositions<ID>) {
        entries[index] = entry
        positions.note(index + shift, of: entry.id)
    }
}
