// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The version-1 sources of a mode that may be ready: those that rang, and those whose descriptor the kernel reported.
//
// A loop performs one of them per turn: the lowest `order`, then the one that has waited longest. So that a busy source
// cannot keep the others waiting, the list is served in passes: a source that was performed in this pass comes back in
// the next one, which begins when every other ready source has had its turn, or none is ready.
//
// The list holds the numbers of their seats. Where it has each, what was reported of it, and when it was performed, is
// written in the seat.

/// The version-1 sources of a mode that may be ready, in the order in which they are to be looked at.
struct ReadyQueue: Sendable {
    struct Key: Comparable, Sendable {
        var pass: UInt64
        var order: Int
        var stamp: UInt64

        static func < (left: Key, right: Key) -> Bool {
            if left.pass != right.pass { return left.pass < right.pass }
            if left.order != right.order { return left.order < right.order }
            return left.stamp < right.stamp
        }
    }

    /// A source that is to be asked whether it is ready.
    struct Candidate: Sendable {
        var seat: RegistrationIndex
        var key: Key
        /// What the kernel has reported of its descriptor.
        var watch: RegistrationWatch?
        /// Whether it counts as performed already, as it will be when it is ready.
        var isPresumed = false
    }

    private typealias Heap = PlacedHeap<RegistrationIndex, Key>

    /// The source, when it is the only one, which it mostly is; then the heap is empty.
    private var only: Heap.Entry?
    private var heap = Heap()
    private var pass: UInt64 = 0
    /// Who was performed in this round comes back in the next pass. One that ends because nobody waits leads to no other
    /// pass: who was performed in it, and who was not, are equal then.
    private var round: UInt64 = 1
    private var lastStamp: UInt64 = 0

    var isEmpty: Bool { only == nil && heap.isEmpty }
    var count: Int { only == nil ? heap.count : 1 }
    /// The one that is to be looked at next.
    var first: RegistrationIndex? { only?.id ?? heap.first?.id }
    /// What the list has cost so far, in looks at entries.
    var steps: Int { heap.steps }

    /// Puts a source on the list; one that is there keeps its place.
    mutating func insert(_ number: RegistrationIndex, order: Int, _ seats: inout RegistrationTable) {
        if seats.list[number].isListed { return }
        // Nobody waits, so every ready source has had its turn: the pass is over.
        if isEmpty { round += 1 }
        lastStamp += 1
        let comesBack = seats.list[number].lastRound == round
        putOn(number, Key(pass: comesBack ? pass + 1 : pass, order: order, stamp: lastStamp), &seats)
    }

    private mutating func putOn(_ number: RegistrationIndex, _ key: Key, _ seats: inout RegistrationTable) {
        if isEmpty {
            only = Heap.Entry(id: number, key: key)
            seats.list[number].place = 0
            return
        }
        if let first = only {
            only = nil
            heap.add(first.id, first.key, &seats)
        }
        heap.add(number, key, &seats)
    }

    /// Puts a source on the list because the kernel reported its descriptor.
    mutating func insert(_ number: RegistrationIndex, order: Int, report: Int, _ seats: inout RegistrationTable) {
        insert(number, order: order, &seats)
        seats.setReport(report, of: number)
    }

    /// Takes the first source off the list, to ask it whether it is ready.
    mutating func takeFirst(_ seats: inout RegistrationTable) -> Candidate? {
        guard let entry = only ?? heap.removeFirst(&seats) else { return nil }
        only = nil
        if !heap.isEmpty { fetchAhead(&seats) }
        return Candidate(seat: entry.id, key: entry.key, watch: forgetPlace(of: entry.id, &seats))
    }

    /// Has the memory of those fetched that come next: of many sources it has left the caches since they came last. First the
    /// seat, then the source of which it tells.
    private func fetchAhead(_ seats: inout RegistrationTable) {
        if let far = heap.upcoming(4) { seats.fetch(far) }
        if let near = heap.upcoming(2) { seats.fetchSource(of: near) }
    }

    /// Counts a source that is about to be asked as performed: it mostly will be. Only where that begins no pass.
    mutating func presume(_ candidate: inout Candidate, _ seats: inout RegistrationTable) {
        guard candidate.key.pass == pass else { return }
        candidate.isPresumed = true
        seats.list[candidate.seat].lastRound = round
    }

    /// It was not ready, or cannot be performed now. When it has rung meanwhile, it does not come back in the next pass,
    /// but comes in this one.
    mutating func retract(_ candidate: inout Candidate, _ seats: inout RegistrationTable) {
        candidate.isPresumed = false
        seats.list[candidate.seat].lastRound = 0
        guard seats.list[candidate.seat].isListed else { return }
        let report = seats.watch(of: candidate.seat)?.report
        var key = takeOff(candidate.seat, &seats)
        key.pass = min(key.pass, pass)
        putOn(candidate.seat, key, &seats)
        seats.setReport(report, of: candidate.seat)
    }

    /// Puts a source that was found ready back to its place.
    mutating func putBack(_ candidate: Candidate, _ seats: inout RegistrationTable) {
        let report = candidate.watch?.report ?? seats.watch(of: candidate.seat)?.report
        if seats.list[candidate.seat].isListed { _ = takeOff(candidate.seat, &seats) }
        putOn(candidate.seat, candidate.key, &seats)
        seats.setReport(report, of: candidate.seat)
    }

    /// Takes a source off the list to perform it.
    ///
    /// - Returns: false when it is no longer there.
    mutating func takeForPerform(_ number: RegistrationIndex, _ seats: inout RegistrationTable) -> Bool {
        if !seats.list[number].isListed { return false }
        beginPerform(number, takeOff(number, &seats), &seats)
        return true
    }

    /// Takes a source to perform it that was found ready, and that may have rung again meanwhile.
    mutating func takeForPerform(_ candidate: Candidate, _ seats: inout RegistrationTable) {
        if seats.list[candidate.seat].isListed { _ = takeOff(candidate.seat, &seats) }
        beginPerform(candidate.seat, candidate.key, &seats)
    }

    private mutating func beginPerform(_ number: RegistrationIndex, _ key: Key, _ seats: inout RegistrationTable) {
        if key.pass != pass {
            pass = key.pass
            round += 1
        }
        seats.list[number].lastRound = round
    }

    /// Takes a source off the list whose seat is about to be free.
    mutating func remove(_ number: RegistrationIndex, _ seats: inout RegistrationTable) {
        if seats.list[number].isListed { _ = takeOff(number, &seats) }
    }

    private mutating func takeOff(_ number: RegistrationIndex, _ seats: inout RegistrationTable) -> Key {
        defer { _ = forgetPlace(of: number, &seats) }
        if let only {
            self.only = nil
            return only.key
        }
        let place = Int(seats.list[number].place)
        let key = heap[place].key
        heap.remove(at: place, &seats)
        return key
    }

    /// A source is off the list.
    ///
    /// - Returns: what was reported of its descriptor, which is forgotten.
    @inline(__always)
    private func forgetPlace(of number: RegistrationIndex, _ seats: inout RegistrationTable) -> RegistrationWatch? {
        seats.list[number].place = Registration.nowhere
        return seats.list[number].watch == Registration.nowhere ? nil : seats.takeReport(of: number)
    }
}
