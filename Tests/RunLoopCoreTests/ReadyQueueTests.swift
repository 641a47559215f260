// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Testing

@testable import RunLoopCore

/// A ready list with the registrations that it writes to.
private struct SeatedList {
    var list = ReadyQueue()
    var seats = RegistrationTable()
    let sources = (0..<4).map { _ in RunLoopSource(readiness: { false }, perform: {}) }
    let numbers: [RegistrationIndex]

    /// Registers all sources.
    init() {
        var seats = RegistrationTable()
        numbers = sources.map { seats.take(for: $0, in: 0) }
        for (key, number) in numbers.enumerated() {
            seats.setWatch(RegistrationWatch(key: UInt64(key + 1), descriptor: 0), of: number)
        }
        self.seats = seats
    }

    mutating func insert(_ source: Int, order: Int) {
        list.insert(numbers[source], order: order, &seats)
    }

    mutating func insert(_ source: Int, order: Int, report: Int) {
        list.insert(numbers[source], order: order, report: report, &seats)
    }

    mutating func takeFirst() -> ReadyQueue.Candidate? {
        list.takeFirst(&seats)
    }

    mutating func putBack(_ candidate: ReadyQueue.Candidate) {
        list.putBack(candidate, &seats)
    }

    mutating func takeForPerform(_ source: Int) -> Bool {
        list.takeForPerform(numbers[source], &seats)
    }

    /// A source leaves the mode, and comes back as a new one.
    mutating func renew(_ source: Int) {
        list.remove(numbers[source], &seats)
        seats.giveUp(numbers[source])
        let number = seats.take(for: sources[source], in: 0)
        #expect(number == numbers[source])
        seats.setWatch(RegistrationWatch(key: 9, descriptor: 0), of: number)
    }

    /// Performs the first source that is ready.
    mutating func perform() -> Int? {
        guard let candidate = takeFirst() else { return nil }
        putBack(candidate)
        let wasThere = list.takeForPerform(candidate.seat, &seats)
        #expect(wasThere)
        return index(of: candidate)
    }

    /// Performs the first source that is ready, which counts as performed while it is checked.
    mutating func performPresumed() -> Int? {
        guard var candidate = takeFirst() else { return nil }
        list.presume(&candidate, &seats)
        if !candidate.isPresumed { list.takeForPerform(candidate, &seats) }
        return index(of: candidate)
    }

    func index(of candidate: ReadyQueue.Candidate) -> Int? {
        numbers.firstIndex(of: candidate.seat)
    }
}

@Suite struct ReadyQueueTests {
    @Test("the lowest order goes first, equal orders in the order of becoming ready")
    func order() {
        var list = SeatedList()
        list.insert(0, order: 1)
        list.insert(1, order: 0)
        list.insert(2, order: 0)
        list.insert(1, order: 0)
        #expect(list.list.count == 3)
        let performed = (0..<4).map { _ in list.perform() }
        #expect(performed == [1, 2, 0, nil])
    }

    @Test("a source that stays ready waits until every other ready source was served", arguments: [false, true])
    func passes(isPresumed: Bool) {
        var list = SeatedList()
        func perform() -> Int? { isPresumed ? list.performPresumed() : list.perform() }
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
    func newPass(isPresumed: Bool) {
        var list = SeatedList()
        func perform() -> Int? { isPresumed ? list.performPresumed() : list.perform() }
        list.insert(0, order: 0)
        #expect(perform() == 0)
        list.insert(0, order: 0)
        list.insert(1, order: 0)
        let performed = (0..<3).map { _ in perform() }
        #expect(performed == [0, 1, nil])
    }

    @Test("what comes next is known as long as all are in the order in which they came")
    func upcoming() {
        var seats = RegistrationTable()
        let numbers = (0..<6).map { _ in
            seats.take(for: RunLoopSource(readiness: { false }, perform: {}), in: 0)
        }
        var heap = PlacedHeap<RegistrationIndex, Int>()
        for (key, number) in numbers.dropLast().enumerated() { heap.add(number, key, &seats) }
        #expect((0..<6).map { heap.upcoming($0) } == numbers[0..<5].map(Optional.some) + [nil])
        _ = heap.removeFirst(&seats)
        #expect((0..<5).map { heap.upcoming($0) } == numbers[1..<5].map(Optional.some) + [nil])
        heap.add(numbers[5], 2, &seats)
        #expect((0..<6).allSatisfy { heap.upcoming($0) == nil })
    }

    @Test("a source that is signalled after it was found ready, before its perform, is performed once")
    func rungMeanwhile() throws {
        var list = SeatedList()
        list.insert(0, order: 0, report: 3)
        let found = list.takeFirst()
        let candidate = try #require(found)
        list.insert(0, order: 0)
        list.list.takeForPerform(candidate, &list.seats)
        #expect(list.list.isEmpty)
        let report = list.takeFirst()?.watch?.report
        #expect(report == nil)
    }

    @Test("of several sources that were performed in a pass each waits for the next, also when one has left")
    func members() {
        var list = SeatedList()
        for source in 0..<4 { list.insert(source, order: 0) }
        #expect((0..<3).map { _ in list.perform() } == [0, 1, 2])
        list.renew(0)
        for source in 0..<3 { list.insert(source, order: -1) }
        // The one that left and came back is new.
        #expect((0..<5).map { _ in list.perform() } == [0, 3, 1, 2, nil])
    }

    @Test("a source that counted as performed, and was not ready, comes in this pass when signalled meanwhile")
    func retracted() throws {
        var list = SeatedList()
        for source in 0..<3 { list.insert(source, order: source) }
        let found = list.takeFirst()
        var candidate = try #require(found)
        list.list.presume(&candidate, &list.seats)
        #expect(candidate.isPresumed)
        list.insert(0, order: 0, report: 5)
        list.list.retract(&candidate, &list.seats)
        #expect(!candidate.isPresumed)
        let again = list.takeFirst()
        #expect(again?.seat == list.numbers[0] && again?.watch?.report == 5)
        // The same when it is signalled later.
        list.insert(0, order: 0)
        #expect((0..<4).map { _ in list.perform() } == [0, 1, 2, nil])
    }

    @Test("a source that begins a pass does not count as performed before it is found ready")
    func beginsPass() throws {
        var list = SeatedList()
        list.insert(0, order: 0)
        list.insert(1, order: 0)
        #expect(list.perform() == 0)
        list.insert(0, order: 0)
        #expect(list.perform() == 1)
        let found = list.takeFirst()
        var candidate = try #require(found)
        list.list.presume(&candidate, &list.seats)
        #expect(!candidate.isPresumed && list.index(of: candidate) == 0)
    }

    @Test("a report stays with its source until that is performed or forgotten")
    func reports() {
        var list = SeatedList()
        list.insert(0, order: 0, report: 7)
        let candidate = list.takeFirst()
        #expect(candidate?.watch?.report == 7)
        #expect(list.list.isEmpty)
        if let candidate { list.putBack(candidate) }
        let taken = [list.takeForPerform(0), list.takeForPerform(0)]
        #expect(taken == [true, false])
        list.insert(0, order: 0)
        let second = list.takeFirst()
        #expect(second != nil && second?.watch?.report == nil)
        list.insert(1, order: 0, report: 1)
        list.renew(1)
        #expect(list.list.isEmpty && list.seats.watch(of: list.numbers[1])?.report == nil)
    }

    @Test("each source has its own report, the last one, whichever are consumed first")
    func manyReports() {
        var list = SeatedList()
        for source in 0..<4 { list.insert(source, order: -source, report: source) }
        list.insert(2, order: 0, report: 12)
        #expect(list.takeFirst()?.watch?.report == 3)
        list.renew(0)
        list.insert(0, order: 1)
        // One that comes after the first has gone.
        list.insert(3, order: 0, report: 23)
        list.insert(1, order: 0, report: 21)
        var reports: [Int: Int] = [:]
        while let candidate = list.takeFirst() { reports[list.index(of: candidate) ?? -1] = candidate.watch?.report }
        #expect(reports == [1: 21, 2: 12, 3: 23])
        for source in 0..<4 { list.insert(source, order: 0) }
        while let candidate = list.takeFirst() { #expect(candidate.watch?.report == nil) }
    }
}
