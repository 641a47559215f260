// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Testing

@testable import RunLoopCore

@Suite struct ReadyListTests {
    private let ids = (0..<4).map { _ in ItemID() }

    private func perform(_ list: inout ReadyList) -> ItemID? {
        guard let candidate = list.takeFirst() else { return nil }
        list.putBack(candidate)
        let wasThere = list.takeForPerform(candidate.id)
        #expect(wasThere)
        return candidate.id
    }

    @Test("the lowest order goes first, equal orders in the order of becoming ready")
    func order() {
        var list = ReadyList()
        list.insert(ids[0], order: 1)
        list.insert(ids[1], order: 0)
        list.insert(ids[2], order: 0)
        list.insert(ids[1], order: 0)
        #expect(list.count == 3)
        let performed = (0..<4).map { _ in perform(&list) }
        #expect(performed == [ids[1], ids[2], ids[0], nil])
    }

    @Test("a source that stays ready waits until every other ready source had its turn")
    func passes() {
        var list = ReadyList()
        list.insert(ids[0], order: -5)
        list.insert(ids[1], order: 5)
        #expect(perform(&list) == ids[0])
        list.insert(ids[0], order: -5)
        list.insert(ids[2], order: 7)
        #expect(perform(&list) == ids[1])
        list.insert(ids[1], order: 5)
        let performed = (0..<3).map { _ in perform(&list) }
        #expect(performed == [ids[2], ids[0], ids[1]])
    }

    @Test("a source that was performed is equal to the others again once none is ready")
    func newPass() {
        var list = ReadyList()
        list.insert(ids[0], order: 0)
        #expect(perform(&list) == ids[0])
        list.insert(ids[0], order: 0)
        list.insert(ids[1], order: 0)
        let performed = (0..<3).map { _ in perform(&list) }
        #expect(performed == [ids[0], ids[1], nil])
    }

    @Test("a source that rings between its being found ready and its perform is performed once")
    func rungMeanwhile() throws {
        var list = ReadyList()
        list.insert(ids[0], order: 0, report: 3)
        let found = list.takeFirst()
        let candidate = try #require(found)
        list.insert(ids[0], order: 0)
        list.takeForPerform(candidate)
        #expect(list.isEmpty)
        let report = list.takeFirst()?.report
        #expect(report == nil)
    }

    @Test("of several sources that were performed in a pass each waits for the next, also when one has left")
    func members() {
        var list = ReadyList()
        for id in ids { list.insert(id, order: 0) }
        #expect((0..<3).map { _ in perform(&list) } == [ids[0], ids[1], ids[2]])
        list.remove(ids[0])
        for id in ids[0..<3] { list.insert(id, order: -1) }
        // The one that left and came back is new.
        #expect((0..<5).map { _ in perform(&list) } == [ids[0], ids[3], ids[1], ids[2], nil])
    }

    @Test("a report stays with its source until that is performed or forgotten")
    func reports() {
        var list = ReadyList()
        list.insert(ids[0], order: 0, report: 7)
        let candidate = list.takeFirst()
        #expect(candidate?.report == 7)
        #expect(list.isEmpty)
        if let candidate { list.putBack(candidate) }
        let taken = [list.takeForPerform(ids[0]), list.takeForPerform(ids[0])]
        #expect(taken == [true, false])
        list.insert(ids[0], order: 0)
        let second = list.takeFirst()
        #expect(second != nil && second?.report == nil)
        list.insert(ids[1], order: 0, report: 1)
        list.remove(ids[1])
        #expect(!list.contains(ids[1]))
    }

    @Test("each source has its own report, the last one, whichever are taken first")
    func manyReports() {
        var list = ReadyList()
        for (turn, id) in ids.enumerated() { list.insert(id, order: -turn, report: turn) }
        list.insert(ids[2], order: 0, report: 12)
        #expect(list.takeFirst()?.report == 3)
        list.remove(ids[0])
        list.insert(ids[0], order: 1)
        // One that comes after the first has gone.
        list.insert(ids[3], order: 0, report: 23)
        list.insert(ids[1], order: 0, report: 21)
        var reports: [ItemID: Int] = [:]
        while let candidate = list.takeFirst() { reports[candidate.id] = candidate.report }
        #expect(reports == [ids[1]: 21, ids[2]: 12, ids[3]: 23])
        for id in ids { list.insert(id, order: 0) }
        while let candidate = list.takeFirst() { #expect(candidate.report == nil) }
    }
}
