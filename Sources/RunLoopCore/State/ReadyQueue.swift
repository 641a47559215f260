// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The version-1 sources of a mode that may be ready: those that were signalled, and those whose descriptor the kernel
// reported.
//
// A loop performs one of them per loop pass: the one with the lowest `order`, then the one that has waited longest. So
// that a busy source cannot starve the others, the list is served in passes of its own: a source that was performed in
// one comes back in the next, which begins when every other ready source has been performed, or none is ready.
//
// The list holds the indices of their registrations. Each registration holds its index in the list, the report on its
// descriptor, and when it was performed.

/// The version-1 sources of a mode that may be ready, in the order in which they are checked.
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

    /// A source to check for readiness.
    struct Candidate: Sendable {
        var seat: RegistrationIndex
        var key: Key
        /// What the kernel has reported of its descriptor.
        var watch: RegistrationWatch?
        /// Whether it was recorded as performed in advance, which is right if it is ready.
        var isPresumed = false
    }

    private typealias Heap = PlacedHeap<RegistrationIndex, Key>

    /// The source, when it is the only one, which it mostly is; then the heap is empty.
    private var only: Heap.Entry?
    private var heap = Heap()
    private var pass: UInt64 = 0
    /// A source that was performed in this round comes back in the next pass. A round that ends because no source waits
    /// begins no new pass: the sources that were performed in it and those that were not are then equal.
    private var round: UInt64 = 1
    private var lastStamp: UInt64 = 0

    var isEmpty: Bool { only == nil && heap.isEmpty }
    var count: Int { only == nil ? heap.count : 1 }
    /// The one to check next.
    var first: RegistrationIndex? { only?.id ?? heap.first?.id }
    /// The cost of the list so far, in entries examined.
    var steps: Int { heap.steps }

    /// Puts a source on the list; one that is listed keeps its position.
    mutating func insert(_ number: RegistrationIndex, order: Int, _ seats: inout RegistrationTable) {
        if seats.list[number].isListed { return }
        // No source waits, so every ready source has been performed: the round is over.
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

    /// Removes the first source from the list, to check whether it is ready.
    mutating func takeFirst(_ seats: inout RegistrationTable) -> Candidate? {
        guard let entry = only ?? heap.removeFirst(&seats) else { return nil }
        only = nil
        if !heap.isEmpty { fetchAhead(&seats) }
        return Candidate(seat: entry.id, key: entry.key, watch: forgetPlace(of: entry.id, &seats))
    }

    /// Prefetches the memory of the sources that come next: with many sources, it has left the caches since their last
    /// message. First the registration, then the source to which it refers.
    private func fetchAhead(_ seats: inout RegistrationTable) {
        if let far = heap.upcoming(4) { seats.fetch(far) }
        if let near = heap.upcoming(2) { seats.fetchSource(of: near) }
    }

    /// Records a source that is about to be checked as performed, because it mostly will be; but not where that begins
    /// a pass.
    mutating func presume(_ candidate: inout Candidate, _ seats: inout RegistrationTable) {
        guard candidate.key.pass == pass else { return }
        candidate.isPresumed = true
        seats.list[candidate.seat].lastRound = round
    }

    /// Undoes `presume`: the source was not ready, or cannot be performed now. If it was signalled meanwhile, it is
    /// listed for this pass, not for the next one.
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

    /// Puts a source that was found ready back in its position.
    mutating func putBack(_ candidate: Candidate, _ seats: inout RegistrationTable) {
        let report = candidate.watch?.report ?? seats.watch(of: candidate.seat)?.report
        if seats.list[candidate.seat].isListed { _ = takeOff(candidate.seat, &seats) }
        putOn(candidate.seat, candidate.key, &seats)
        seats.setReport(report, of: candidate.seat)
    }

    /// Removes a source from the list to perform it.
    ///
    /// - Returns: false when it is no longer listed.
    mutating func takeForPerform(_ number: RegistrationIndex, _ seats: inout RegistrationTable) -> Bool {
        if !seats.list[number].isListed { return false }
        beginPerform(number, takeOff(number, &seats), &seats)
        return true
    }

    /// Removes a source that was found ready, to perform it; it may have been listed again meanwhile.
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

    /// Removes a source whose registration is about to be freed from the list.
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

    /// A source has left the list.
    ///
    /// - Returns: what was reported of its descriptor; the report is cleared.
    @inline(__always)
    private func forgetPlace(of number: RegistrationIndex, _ seats: inout RegistrationTable) -> RegistrationWatch? {
        seats.list[number].place = Registration.nowhere
        return seats.list[number].watch == Registration.nowhere ? nil : seats.takeReport(of: number)
    }
}
