// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The version-1 sources of a mode that may be ready: those that rang, and those whose descriptor the kernel reported.
//
// A loop performs one of them per turn: the lowest `order`, then the one that has waited longest. So that a busy source
// cannot keep the others waiting, the list is served in passes: a source that was performed in this pass comes back in
// the next one, which begins when every other ready source has had its turn, or none is ready.

/// The version-1 sources of a mode that may be ready, in the order in which they are to be looked at.
struct ReadyList: Sendable {
    struct Key: Comparable, Sendable {
        var pass: UInt64
        var order: Int
        var stamp: UInt64

        static func < (left: Key, right: Key) -> Bool {
            (left.pass, left.order, left.stamp) < (right.pass, right.order, right.stamp)
        }
    }

    /// A source that is to be asked whether it is ready.
    struct Candidate: Sendable {
        var id: ItemID
        var key: Key
        /// The turn in which the kernel last reported its descriptor.
        var report: Int?
    }

    private var heap = IndexedHeap<Key>()
    private var reports = Reports()
    private var performed = PassMembers()
    private var pass: UInt64 = 0
    private var lastStamp: UInt64 = 0

    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }
    /// The one that is to be looked at next.
    var first: ItemID? { heap.first?.id }
    /// What the list has cost so far, in looks at entries.
    var steps: Int { heap.steps }

    func contains(_ id: ItemID) -> Bool {
        heap.contains(id)
    }

    /// Puts a source on the list; one that is there keeps its place.
    mutating func insert(_ id: ItemID, order: Int) {
        if heap.contains(id) { return }
        // Nobody waits, so every ready source has had its turn: the pass is over.
        if heap.isEmpty { performed.removeAll() }
        lastStamp += 1
        heap.add(id, Key(pass: performed.contains(id) ? pass + 1 : pass, order: order, stamp: lastStamp))
    }

    /// Puts a source on the list because the kernel reported its descriptor.
    mutating func insert(_ id: ItemID, order: Int, report: Int) {
        insert(id, order: order)
        reports.note(id, report)
    }

    /// Takes the first source off the list, to ask it whether it is ready.
    mutating func takeFirst() -> Candidate? {
        guard let entry = heap.removeFirst() else { return nil }
        return Candidate(id: entry.id, key: entry.key, report: reports.take(entry.id))
    }

    /// Puts a source that was found ready back to its place.
    mutating func putBack(_ candidate: Candidate) {
        heap.set(candidate.id, candidate.key)
        if let report = candidate.report { reports.note(candidate.id, report) }
    }

    /// Takes a source off the list to perform it.
    ///
    /// - Returns: false when it is no longer there.
    mutating func takeForPerform(_ id: ItemID) -> Bool {
        guard let key = heap.remove(id) else { return false }
        beginPerform(id, key)
        return true
    }

    /// Takes a source to perform it that was found ready, and that may have rung again meanwhile.
    mutating func takeForPerform(_ candidate: Candidate) {
        heap.remove(candidate.id)
        beginPerform(candidate.id, candidate.key)
    }

    private mutating func beginPerform(_ id: ItemID, _ key: Key) {
        _ = reports.take(id)
        if key.pass != pass {
            pass = key.pass
            performed.removeAll()
        }
        performed.insert(id)
    }

    /// Forgets a source.
    mutating func remove(_ id: ItemID) {
        heap.remove(id)
        _ = reports.take(id)
        performed.remove(id)
    }
}

/// The turns in which the kernel reported descriptors: mostly that of one source, which needs no table.
private struct Reports: Sendable {
    private var first: (id: ItemID, turn: Int)?
    private var others: [ItemID: Int] = [:]

    /// The one before, if there is one, does not count any more.
    mutating func note(_ id: ItemID, _ turn: Int) {
        if first?.id == id || first == nil && others.isEmpty { first = (id, turn) } else { others[id] = turn }
    }

    mutating func take(_ id: ItemID) -> Int? {
        guard let first, first.id == id else { return others.isEmpty ? nil : others.removeValue(forKey: id) }
        self.first = nil
        return first.turn
    }
}

/// The sources that were performed in a pass: mostly one, which needs no table.
private struct PassMembers: Sendable {
    private var first: ItemID?
    private var others: Set<ItemID> = []

    func contains(_ id: ItemID) -> Bool {
        first == id || others.contains(id)
    }

    mutating func insert(_ id: ItemID) {
        if contains(id) { return }
        if first == nil { first = id } else { others.insert(id) }
    }

    mutating func remove(_ id: ItemID) {
        if first == id { first = nil } else if !others.isEmpty { others.remove(id) }
    }

    mutating func removeAll() {
        first = nil
        if others.isEmpty { return }
        // To empty a table costs what it has room for, be there many in it or few.
        if others.count * 8 < others.capacity { others = [] } else { others.removeAll(keepingCapacity: true) }
    }
}
