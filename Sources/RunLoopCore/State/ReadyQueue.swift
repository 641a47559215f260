// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

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

// How a wait finds what is ready already: one access to the loop's state for each source that may be ready, and one
// when there is none, which decides how the loop may wait.

/// A scan for an event, in steps: between two steps a source is checked for readiness.
struct ReadyScan {
    /// What to do next.
    enum Step {
        /// Check whether the source is ready; it has left the ready list.
        case ask
        /// Timers are due, and go next.
        case timers
        /// Nothing is ready: wait as planned.
        case nothing
    }

    /// The source to check, and what was known of it.
    fileprivate(set) var source: RunLoopSource?
    fileprivate(set) var candidate: ReadyQueue.Candidate?
    /// How to wait, when nothing is ready.
    fileprivate(set) var plan = WaitPlan.none
    fileprivate var timersAreDue = false
    /// How many sources may still be checked; nil before the first step.
    fileprivate var left: Int?
}

/// The result of accepting a source that was found ready.
enum ReadyAnswer {
    /// It has left the mode meanwhile.
    case gone
    /// It is back in its position on the ready list.
    case isListed
    /// It is the main queue, and back on the list.
    case mainQueue
    /// It is to be performed: there is no observer to notify before.
    case begins
}

extension RunLoopState {
    /// The next step of a scan; the source to check has left the list.
    ///
    /// - Returns: whether the source, if it is ready, may be performed without another access to the state; and the
    ///   step.
    mutating func next(_ look: inout ReadyScan, _ run: LoopRun, at now: MonotonicInstant) -> (Bool, ReadyScan.Step) {
        if look.candidate != nil { dismiss(&look, in: run.mode) }
        let left: Int
        if let more = look.left {
            left = more
        } else {
            look.timersAreDue = modes[run.mode].timers.isDue(at: now)
            left = !look.timersAreDue || run.hasJustFiredTimers ? modes[run.mode].ready.count : 0
        }
        if left > 0, let first = modes[run.mode].takeFirst(&look.candidate, unless: mainQueue?.source, &seats) {
            look.left = left - 1
            look.source = seats.list[first.seat].source
            return (first.isPresumed, .ask)
        }
        look.left = 0
        if look.timersAreDue { return (false, .timers) }
        look.plan = waitPlan(run)
        return (false, .nothing)
    }

    /// Records that the source that was checked is not ready.
    private mutating func dismiss(_ look: inout ReadyScan, in mode: Int) {
        guard var candidate = look.candidate, candidate.isPresumed, let source = look.source,
            seats.seat(of: source, in: mode, near: candidate.seat) == candidate.seat
        else { return }
        modes[mode].ready.retract(&candidate, &seats)
    }

    /// Records that the source that was checked is ready.
    ///
    /// - Parameters:
    ///   - look: the scan; its registration index is corrected when the source has left the mode and come back.
    ///   - mode: the run's mode.
    ///   - mayBegin: whether to perform it at once, if there is no observer to notify of the end of the wait.
    /// - Returns: what becomes of it.
    mutating func accept(_ look: inout ReadyScan, in mode: Int, mayBegin: Bool) -> ReadyAnswer {
        guard let source = look.source, var candidate = look.candidate else { return .gone }
        look.candidate = nil
        guard let number = seats.seat(of: source, in: mode, near: candidate.seat) else { return .gone }
        candidate.seat = number
        if candidate.isPresumed { modes[mode].ready.retract(&candidate, &seats) }
        look.candidate = candidate
        if candidate.watch != nil { modes[mode].recentReports.note(number) }
        let isMainQueue = mainQueue?.source == source.id
        guard mayBegin, !isMainQueue, modes[mode].observers.isEmpty else {
            modes[mode].ready.putBack(candidate, &seats)
            return isMainQueue ? .mainQueue : .isListed
        }
        modes[mode].ready.takeForPerform(candidate, &seats)
        return .begins
    }
}

extension ModeState {
    /// Removes the first source from the ready list. Unless that takes another access to the state, it also does in
    /// advance what `accept` will do, which is right if the source is ready and the state does not change in between.
    ///
    /// - Parameters:
    ///   - candidate: what was known of the source.
    ///   - mainQueue: the main queue's source, which is not performed.
    ///   - seats: the registration table.
    /// - Returns: its registration, and whether it was accepted in advance; nil when the list is empty.
    fileprivate mutating func takeFirst(
        _ candidate: inout ReadyQueue.Candidate?, unless mainQueue: ItemID?, _ seats: inout RegistrationTable
    ) -> (seat: RegistrationIndex, isPresumed: Bool)? {
        guard var first = ready.takeFirst(&seats) else { return nil }
        if observers.isEmpty, first.watch == nil || recentReports.seats.last == first.seat,
            mainQueue == nil || seats.list[first.seat].source?.id != mainQueue
        {
            ready.presume(&first, &seats)
        }
        candidate = first
        return (first.seat, first.isPresumed)
    }
}
