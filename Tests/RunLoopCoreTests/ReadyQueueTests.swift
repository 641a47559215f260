// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Testing

@testable import RunLoopCore

/// A ready list with the registrations that it writes to.
private struct RegisteredQueue {
    var list = ReadyQueue()
    var registrations = RegistrationTable()
    let sources = (0..<4).map { _ in RunLoopSource(readiness: { false }, perform: {}) }
    let numbers: [RegistrationIndex]

    /// Registers all sources.
    init() {
        var registrations = RegistrationTable()
        numbers = sources.map { registrations.allocate(for: $0, in: 0) }
        for (key, number) in numbers.enumerated() {
            registrations.setDescriptor(DescriptorState(key: UInt64(key + 1), raw: 0), of: number)
        }
        self.registrations = registrations
    }

    mutating func insert(_ source: Int, order: Int) {
        list.insert(numbers[source], order: order, &registrations)
    }

    mutating func insert(_ source: Int, order: Int, report: Int) {
        list.insert(numbers[source], order: order, report: report, &registrations)
    }

    mutating func dequeueFirst() -> ReadyQueue.Candidate? {
        list.dequeueFirst(&registrations)
    }

    mutating func reinsert(_ candidate: ReadyQueue.Candidate) {
        list.reinsert(candidate, &registrations)
    }

    mutating func dequeueForPerform(_ source: Int) -> Bool {
        list.dequeueForPerform(numbers[source], &registrations)
    }

    /// A source leaves the mode, and comes back as a new one.
    mutating func renew(_ source: Int) {
        list.remove(numbers[source], &registrations)
        registrations.deallocate(numbers[source])
        let number = registrations.allocate(for: sources[source], in: 0)
        #expect(number == numbers[source])
        registrations.setDescriptor(DescriptorState(key: 9, raw: 0), of: number)
    }

    /// Performs the first source that is ready.
    mutating func perform() -> Int? {
        guard let candidate = dequeueFirst() else { return nil }
        reinsert(candidate)
        let wasThere = list.dequeueForPerform(candidate.registration, &registrations)
        #expect(wasThere)
        return index(of: candidate)
    }

    /// Performs the first source that is ready, which counts as performed while it is checked.
    mutating func performSpeculatively() -> Int? {
        guard var candidate = dequeueFirst() else { return nil }
        list.speculate(on: &candidate, &registrations)
        if !candidate.isSpeculative { list.dequeueForPerform(candidate, &registrations) }
        return index(of: candidate)
    }

    func index(of candidate: ReadyQueue.Candidate) -> Int? {
        numbers.firstIndex(of: candidate.registration)
    }
}

@Suite struct ReadyQueueTests {
    @Test("the lowest order goes first, equal orders in the order of becoming ready")
    func order() {
        var list = RegisteredQueue()
        list.insert(0, order: 1)
        list.insert(1, order: 0)
        list.insert(2, order: 0)
        list.insert(1, order: 0)
        #expect(list.list.count == 3)
        let performed = (0..<4).map { _ in list.perform() }
        #expect(performed == [1, 2, 0, nil])
    }

    @Test("a source that stays ready waits until every other ready source was served", arguments: [false, true])
    func passes(isSpeculative: Bool) {
        var list = RegisteredQueue()
        func perform() -> Int? { isSpeculative ? list.performSpeculatively() : list.perform() }
        list.insert(0, order: -5)
        list.insert(1, order: 5)
        #expect(perform() == 0)
        list.insert(0, order: -5)
        list.insert(2, order: 7)
        #expect(perform() == 1)
        list.insert(1, order: 5)
        let performed = (0..<3).map { _ in perform() }
        #expect(performed == [2, 0, 1])
    }

    @Test("a source that was performed is equal to the others again once none is ready", arguments: [false, true])
    func newPass(isSpeculative: Bool) {
        var list = RegisteredQueue()
        func perform() -> Int? { isSpeculative ? list.performSpeculatively() : list.perform() }
        list.insert(0, order: 0)
        #expect(perform() == 0)
        list.insert(0, order: 0)
        list.insert(1, order: 0)
        let performed = (0..<3).map { _ in perform() }
        #expect(performed == [0, 1, nil])
    }

    @Test("what comes next is known as long as all are in the order in which they came")
    func upcoming() {
        var registrations = RegistrationTable()
        let numbers = (0..<6).map { _ in
            registrations.allocate(for: RunLoopSource(readiness: { false }, perform: {}), in: 0)
        }
        var heap = AddressableHeap<RegistrationIndex, Int>()
        for (key, number) in numbers.dropLast().enumerated() { heap.add(number, key, &registrations) }
        #expect((0..<6).map { heap.upcoming($0) } == numbers[0..<5].map(Optional.some) + [nil])
        _ = heap.removeFirst(&registrations)
        #expect((0..<5).map { heap.upcoming($0) } == numbers[1..<5].map(Optional.some) + [nil])
        heap.add(numbers[5], 2, &registrations)
        #expect((0..<6).allSatisfy { heap.upcoming($0) == nil })
    }

    @Test("a source that is signalled after it was found ready, before its perform, is performed once")
    func signalledMeanwhile() throws {
        var list = RegisteredQueue()
        list.insert(0, order: 0, report: 3)
        let found = list.dequeueFirst()
        let candidate = try #require(found)
        list.insert(0, order: 0)
        list.list.dequeueForPerform(candidate, &list.registrations)
        #expect(list.list.isEmpty)
        let report = list.dequeueFirst()?.descriptor?.report
        #expect(report == nil)
    }

    @Test("of several sources that were performed in a pass each waits for the next, also when one has left")
    func members() {
        var list = RegisteredQueue()
        for source in 0..<4 { list.insert(source, order: 0) }
        #expect((0..<3).map { _ in list.perform() } == [0, 1, 2])
        list.renew(0)
        for source in 0..<3 { list.insert(source, order: -1) }
        // The one that left and came back is new.
        #expect((0..<5).map { _ in list.perform() } == [0, 3, 1, 2, nil])
    }

    @Test("a source that counted as performed, and was not ready, comes in this pass when signalled meanwhile")
    func rolledBack() throws {
        var list = RegisteredQueue()
        for source in 0..<3 { list.insert(source, order: source) }
        let found = list.dequeueFirst()
        var candidate = try #require(found)
        list.list.speculate(on: &candidate, &list.registrations)
        #expect(candidate.isSpeculative)
        list.insert(0, order: 0, report: 5)
        list.list.rollBack(&candidate, &list.registrations)
        #expect(!candidate.isSpeculative)
        let again = list.dequeueFirst()
        #expect(again?.registration == list.numbers[0] && again?.descriptor?.report == 5)
        // The same when it is signalled later.
        list.insert(0, order: 0)
        #expect((0..<4).map { _ in list.perform() } == [0, 1, 2, nil])
    }

    @Test("a source that begins a pass does not count as performed before it is found ready")
    func beginsPass() throws {
        var list = RegisteredQueue()
        list.insert(0, order: 0)
        list.insert(1, order: 0)
        #expect(list.perform() == 0)
        list.insert(0, order: 0)
        #expect(list.perform() == 1)
        let found = list.dequeueFirst()
        var candidate = try #require(found)
        list.list.speculate(on: &candidate, &list.registrations)
        #expect(!candidate.isSpeculative && list.index(of: candidate) == 0)
    }

    @Test("a report stays with its source until that is performed or forgotten")
    func reports() {
        var list = RegisteredQueue()
        list.insert(0, order: 0, report: 7)
        let candidate = list.dequeueFirst()
        #expect(candidate?.descriptor?.report == 7)
        #expect(list.list.isEmpty)
        if let candidate { list.reinsert(candidate) }
        let taken = [list.dequeueForPerform(0), list.dequeueForPerform(0)]
        #expect(taken == [true, false])
        list.insert(0, order: 0)
        let second = list.dequeueFirst()
        #expect(second != nil && second?.descriptor?.report == nil)
        list.insert(1, order: 0, report: 1)
        list.renew(1)
        #expect(list.list.isEmpty && list.registrations.descriptor(of: list.numbers[1])?.report == nil)
    }

    @Test("each source has its own report, the last one, whichever are consumed first")
    func manyReports() {
        var list = RegisteredQueue()
        for source in 0..<4 { list.insert(source, order: -source, report: source) }
        list.insert(2, order: 0, report: 12)
        #expect(list.dequeueFirst()?.descriptor?.report == 3)
        list.renew(0)
        list.insert(0, order: 1)
        // One that comes after the first has gone.
        list.insert(3, order: 0, report: 23)
        list.insert(1, order: 0, report: 21)
        var reports: [Int: Int] = [:]
        while let candidate = list.dequeueFirst() {
            reports[list.index(of: candidate) ?? -1] = candidate.descriptor?.report
        }
        #expect(reports == [1: 21, 2: 12, 3: 23])
        for source in 0..<4 { list.insert(source, order: 0) }
        while let candidate = list.dequeueFirst() { #expect(candidate.descriptor?.report == nil) }
    }
}
