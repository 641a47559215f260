// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Where it is written down at which places of a heap its items are.
protocol HeapPlaces<ID> {
    associatedtype ID
    /// An item has come, or was moved, to a place.
    mutating func note(_ place: Int, of id: ID)
}

/// A binary heap of items, smallest key first, that tells where each item is, so that any may be taken out: adding,
/// removing and changing the key of any item cost O(log n), looking at the first costs O(1).
///
/// Items that come in the order of their keys lie in that order, which is a heap too: then adding one and taking the
/// first cost O(1). An item that comes, or goes, elsewhere ends that, until the heap is empty.
struct PlacedHeap<ID: Sendable, Key: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var id: ID
        var key: Key
    }

    private static var fewest: Int { 8 }
    /// Places are numbered on to this, and then anew: four bytes hold each.
    private static var placeLimit: Int { 1 << 30 }

    /// The heap begins at `head`: before it are the places of items that were taken while all lay in order.
    private(set) var entries: [Entry] = []
    private(set) var head = 0
    private var isSorted = true
    /// How many places at the beginning were given up since the heap was empty.
    private var shift = 0
    /// How many entries were compared or looked at so far: what tests measure costs by.
    private(set) var steps = 0

    var isEmpty: Bool { head == entries.count }
    var count: Int { entries.count - head }
    var first: Entry? { isEmpty ? nil : entries[head] }

    /// The item that is to be taken after so many others, if nothing comes between; nil where that is not known.
    func upcoming(_ distance: Int) -> ID? {
        isSorted && distance < count ? entries[head + distance].id : nil
    }

    /// The entry at a place.
    subscript(place: Int) -> Entry { entries[place - shift] }

    /// The place of the entry at an index.
    func place(ofEntry index: Int) -> Int { index + shift }

    /// Puts an item in that is not there.
    mutating func add(_ id: ID, _ key: Key, _ places: inout some HeapPlaces<ID>) {
        steps += 1
        if isSorted, head > 0, head < entries.count, key < entries[head].key {
            head -= 1
            entries[head] = Entry(id: id, key: key)
            places.note(head + shift, of: id)
            return
        }
        if isSorted, head < entries.count, key < entries[entries.count - 1].key { isSorted = false }
        entries.append(Entry(id: id, key: key))
        places.note(entries.count - 1 + shift, of: id)
        if !isSorted { moveUp(from: entries.count - 1, &places) }
    }

    /// Gives the item at a place another key.
    mutating func setKey(_ key: Key, at place: Int, _ places: inout some HeapPlaces<ID>) {
        entries[place - shift].key = key
        isSorted = false
        restoreOrder(around: place - shift, &places)
    }

    /// Takes the item with the smallest key out. Where it was remains written down.
    mutating func removeFirst(_ places: inout some HeapPlaces<ID>) -> Entry? {
        guard let entry = first else { return nil }
        remove(atIndex: head, &places)
        return entry
    }

    /// Takes the item at a place out. Where it was remains written down.
    mutating func remove(at place: Int, _ places: inout some HeapPlaces<ID>) {
        remove(atIndex: place - shift, &places)
    }

    private mutating func remove(atIndex index: Int, _ places: inout some HeapPlaces<ID>) {
        if isSorted, index == head, count > 1 {
            head += 1
            giveUpPlaces(&places)
            return
        }
        let last = entries.removeLast()
        if index < entries.count {
            isSorted = false
            entries[index] = last
            places.note(index + shift, of: last.id)
            restoreOrder(around: index, &places)
        }
        giveUpPlaces(&places)
    }

    /// Gives up the places before the first item: when there is none, and when they are most of all.
    private mutating func giveUpPlaces(_ places: inout some HeapPlaces<ID>) {
        if isEmpty {
            if head > 0 { entries.removeAll(keepingCapacity: true) }
            (head, shift, isSorted) = (0, 0, true)
        } else if head > Self.fewest, head > entries.count / 2 {
            entries.removeSubrange(0..<head)
            shift += head
            head = 0
            if shift > Self.placeLimit {
                shift = 0
                for index in entries.indices { places.note(index, of: entries[index].id) }
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

    private mutating func restoreOrder(around index: Int, _ places: inout some HeapPlaces<ID>) {
        if moveUp(from: index, &places) == index { moveDown(from: index, &places) }
    }

    @discardableResult
    private mutating func moveUp(from start: Int, _ places: inout some HeapPlaces<ID>) -> Int {
        var index = start
        while index > head {
            steps += 1
            let parent = head + (index - head - 1) / 2
            guard entries[index].key < entries[parent].key else { break }
            exchange(index, parent, &places)
            index = parent
        }
        return index
    }

    private mutating func moveDown(from start: Int, _ places: inout some HeapPlaces<ID>) {
        var index = start
        while true {
            var child = head + 2 * (index - head) + 1
            steps += 1
            if child + 1 < entries.count, entries[child + 1].key < entries[child].key { child += 1 }
            guard child < entries.count, entries[child].key < entries[index].key else { return }
            exchange(index, child, &places)
            index = child
        }
    }

    private mutating func exchange(_ one: Int, _ other: Int, _ places: inout some HeapPlaces<ID>) {
        entries.swapAt(one, other)
        places.note(one + shift, of: entries[one].id)
        places.note(other + shift, of: entries[other].id)
    }
}
