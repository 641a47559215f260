// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The version-1 sources of a mode that may be ready, in the order in which they are checked: those that were signalled,
/// and those whose descriptor the kernel reported.
///
/// A loop performs one of them per loop pass: the one with the lowest `order`, then the one that has waited longest. So
/// that a busy source cannot starve the others, the list is served in passes of its own: a source that was performed in
/// one comes back in the next, which begins when every other ready source has been performed, or none is ready.
///
/// The list holds the indices of their registrations. Each registration holds its index in the list, the report on its
/// descriptor, and when it was performed.
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
        var registration: RegistrationIndex
        var key: Key
        /// What the kernel has reported of its descriptor.
        var descriptor: DescriptorState?
        /// Whether it was recorded as performed in advance, which is right if it is ready.
        var isSpeculative = false
    }

    typealias Heap = AddressableHeap<RegistrationIndex, Key>

    /// The source, when it is the only one, which it mostly is; then the heap is empty.
    private var only: Heap.Entry?
    private var pass: UInt64 = 0
    /// A source that was performed in this round comes back in the next pass. A round that ends because no source waits
    /// begins no new pass: the sources that were performed in it and those that were not are then equal.
    private var round: UInt64 = 1
    private(set) var lastStamp: UInt64 = 0
    // After those, which change with each source, while it mostly stays empty.
    private(set) var heap = Heap()

    var isEmpty: Bool { only == nil && heap.isEmpty }
    var count: Int { only == nil ? heap.count : 1 }
    /// The one to check next.
    var first: RegistrationIndex? { only?.id ?? heap.first?.id }
    /// The cost of the list so far, in entries examined.
    var steps: Int { heap.steps }

    /// Puts a source on the list; one that is listed keeps its position.
    mutating func insert(_ number: RegistrationIndex, order: Int, _ registrations: inout RegistrationTable) {
        if registrations.list[number].isListed { return }
        // No source waits, so every ready source has been performed: the round is over.
        if isEmpty { round += 1 }
        lastStamp += 1
        let comesBack = registrations.list[number].lastRound == round
        enlist(number, Key(pass: comesBack ? pass + 1 : pass, order: order, stamp: lastStamp), &registrations)
    }

    private mutating func enlist(_ number: RegistrationIndex, _ key: Key, _ registrations: inout RegistrationTable) {
        if isEmpty {
            only = Heap.Entry(id: number, key: key)
            registrations.list[number].position = 0
            return
        }
        if let first = only {
            only = nil
            heap.add(first.id, first.key, &registrations)
        }
        heap.add(number, key, &registrations)
    }

    /// Puts a source on the list because the kernel reported its descriptor.
    mutating func insert(_ number: RegistrationIndex, order: Int, report: Int, _ registrations: inout RegistrationTable)
    {
        insert(number, order: order, &registrations)
        registrations.setReport(report, of: number)
    }

    /// Removes the first source from the list, to check whether it is ready.
    mutating func dequeueFirst(_ registrations: inout RegistrationTable) -> Candidate? {
        guard let entry = only ?? heap.removeFirst(&registrations) else { return nil }
        only = nil
        if !heap.isEmpty { fetchAhead(&registrations) }
        return Candidate(
            registration: entry.id, key: entry.key, descriptor: forgetPosition(of: entry.id, &registrations))
    }

    /// Prefetches the memory of the sources that come next: first the registration, then the source to which it refers.
    private func fetchAhead(_ registrations: inout RegistrationTable) {
        if let far = heap.upcoming(Tuning.registrationPrefetchDistance) { registrations.fetch(far) }
        if let near = heap.upcoming(Tuning.sourcePrefetchDistance) { registrations.fetchSource(of: near) }
    }

    /// Records a source that is about to be checked as performed, because it mostly will be; but not where that begins
    /// a pass.
    mutating func speculate(on candidate: inout Candidate, _ registrations: inout RegistrationTable) {
        guard candidate.key.pass == pass else { return }
        candidate.isSpeculative = true
        registrations.list[candidate.registration].lastRound = round
    }

    /// Undoes `speculate`: the source was not ready, or cannot be performed now. If it was signalled meanwhile, it is
    /// listed for this pass, not for the next one.
    mutating func rollBack(_ candidate: inout Candidate, _ registrations: inout RegistrationTable) {
        candidate.isSpeculative = false
        registrations.list[candidate.registration].lastRound = 0
        guard registrations.list[candidate.registration].isListed else { return }
        let report = registrations.descriptor(of: candidate.registration)?.report
        var key = unlist(candidate.registration, &registrations)
        key.pass = min(key.pass, pass)
        enlist(candidate.registration, key, &registrations)
        registrations.setReport(report, of: candidate.registration)
    }

    /// Puts a source that was found ready back in its position.
    mutating func reinsert(_ candidate: Candidate, _ registrations: inout RegistrationTable) {
        let report = candidate.descriptor?.report ?? registrations.descriptor(of: candidate.registration)?.report
        if registrations.list[candidate.registration].isListed { _ = unlist(candidate.registration, &registrations) }
        enlist(candidate.registration, candidate.key, &registrations)
        registrations.setReport(report, of: candidate.registration)
    }

    /// Removes a source from the list to perform it.
    ///
    /// - Returns: false when it is no longer listed.
    mutating func dequeueForPerform(_ number: RegistrationIndex, _ registrations: inout RegistrationTable) -> Bool {
        if !registrations.list[number].isListed { return false }
        beginPerform(number, unlist(number, &registrations), &registrations)
        return true
    }

    /// Removes a source that was found ready, to perform it; it may have been listed again meanwhile.
    mutating func dequeueForPerform(_ candidate: Candidate, _ registrations: inout RegistrationTable) {
        if registrations.list[candidate.registration].isListed { _ = unlist(candidate.registration, &registrations) }
        beginPerform(candidate.registration, candidate.key, &registrations)
    }

    private mutating func beginPerform(
        _ number: RegistrationIndex, _ key: Key, _ registrations: inout RegistrationTable
    ) {
        if key.pass != pass {
            pass = key.pass
            round += 1
        }
        registrations.list[number].lastRound = round
    }

    /// Removes a source whose registration is about to be freed from the list.
    mutating func remove(_ number: RegistrationIndex, _ registrations: inout RegistrationTable) {
        if registrations.list[number].isListed { _ = unlist(number, &registrations) }
    }

    private mutating func unlist(_ number: RegistrationIndex, _ registrations: inout RegistrationTable) -> Key {
        defer { _ = forgetPosition(of: number, &registrations) }
        if let only {
            self.only = nil
            return only.key
        }
        let position = Int(registrations.list[number].position)
        let key = heap[position].key
        heap.remove(at: position, &registrations)
        return key
    }

    /// A source has left the list.
    ///
    /// - Returns: what was reported of its descriptor; the report is cleared.
    @inline(__always)
    private func forgetPosition(of number: RegistrationIndex, _ registrations: inout RegistrationTable)
        -> DescriptorState?
    {
        registrations.list[number].position = Registration.nowhere
        let isKnown = registrations.list[number].descriptor != Registration.nowhere
        return isKnown ? registrations.consumeReport(of: number) : nil
    }
}
