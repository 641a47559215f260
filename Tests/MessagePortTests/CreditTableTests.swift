// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("the table of grants", .leakCheck) struct CreditTableTests {
    private static let owner = PeerID.process(1)

    /// A table with connections that clients have opened, and what the clients see.
    private final class Bench {
        var table = CreditTable()
        var sent: [SharedWord] = []
        var grants: [SharedWord] = []

        init(_ count: Int) throws {
            let page = try GrantPage()
            table.page = page
            try open(count)
        }

        /// Opens more connections.
        func open(_ count: Int) throws {
            let page = try #require(table.page)
            for key in UInt64(sent.count) + 1...UInt64(sent.count + count) {
                let opened = table.open(key, of: owner)
                let index = try #require(opened)
                let (word, file) = try SentCount.make()
                let isShared = table.share(index, try SentCount.map(file))
                #expect(isShared)
                sent.append(word)
                grants.append(try #require(try GrantPage.map(page.file, at: index)))
            }
        }

        func open(_ key: UInt64, of owner: PeerID) -> Int? { table.open(key, of: owner) }
        func isShared(_ index: Int) -> Bool { table.share(index, nil) }
        func takeBack(besides exception: Int? = nil, leaving portion: Int = 0) -> Bool {
            table.takeBack(besides: exception, leaving: portion)
        }

        func receive(_ count: Int, _ index: Int) {
            table.didReceive(count, over: ReceivedCredit(index: index, key: UInt64(index) + 1))
        }
    }

    @Test("a grant counts as outstanding until its messages have come")
    func outstanding() throws {
        let bench = try Bench(1)
        bench.table.raise(0, by: 5, atMost: 64, portion: 64)
        #expect(bench.table.outstanding == 5 && bench.grants[0].load() == 5 && bench.table.maySend(0))
        bench.sent[0].store(5)
        #expect(!bench.table.maySend(0) && bench.table.onTheirWay(0) == 5)
        bench.receive(3, 0)
        #expect(bench.table.outstanding == 2 && bench.table.onTheirWay(0) == 2 && !bench.table.hasExhausted)
        bench.receive(2, 0)
        #expect(bench.table.outstanding == 0 && bench.table.hasExhausted)
    }

    @Test("a connection gets no more than its share that it has not used")
    func share() throws {
        let bench = try Bench(1)
        bench.table.raise(0, by: 64, atMost: 8, portion: 64)
        #expect(bench.grants[0].load() == 8)
        bench.table.raise(0, by: 64, atMost: 8, portion: 64)
        bench.table.raise(0, by: -3, atMost: 64, portion: 64)
        bench.table.raise(0, by: 3, atMost: 0, portion: 64)
        #expect(bench.grants[0].load() == 8)
    }

    @Test("what is taken back is what no message was sent for, of all connections but one")
    func takeBack() throws {
        let bench = try Bench(3)
        for index in 0..<3 { bench.table.raise(index, by: 10, atMost: 64, portion: 64) }
        bench.sent[0].store(4)
        bench.receive(1, 0)
        let isTaken = bench.takeBack(besides: 2)
        #expect(isTaken)
        #expect(bench.grants.map { $0.load() } == [4, 0, 10])
        #expect(bench.table.outstanding == 3 + 0 + 10)
        #expect(!bench.takeBack(besides: 2))
    }

    @Test("a connection gets its portion, or half of what is free; what exceeds a portion is taken back first")
    func portions() throws {
        let bench = try Bench(1)
        #expect(bench.table.portion(of: 64) == 64 && bench.table.batch(of: 64) == 64)
        bench.table.raise(0, by: 64, atMost: 64, portion: 64)
        try bench.open(3)
        #expect(bench.table.portion(of: 64) == 16 && bench.table.batch(of: 64) == 16)
        bench.sent[0].store(8)
        let isTaken = bench.takeBack(besides: 1, leaving: 16)
        #expect(isTaken && bench.grants[0].load() == 24 && bench.table.outstanding == 24)
        for _ in 0..<2 { bench.table.raise(1, by: 40, atMost: 64, portion: 16) }
        #expect(bench.grants[1].load() == 20)
        bench.table.raise(2, by: 20, atMost: 64, portion: 16)
        #expect(bench.grants[2].load() == 16)
        // What is sent is no longer unused.
        bench.sent[2].store(16)
        bench.table.raise(2, by: 4, atMost: 64, portion: 16)
        #expect(bench.grants[2].load() == 20)
        // A portion has at least one slot, a batch a part of the queue that does not depend on the number of clients.
        try bench.open(96)
        #expect(bench.table.portion(of: 64) == 1 && bench.table.batch(of: 64) == 4)
        for key in UInt64(2)...100 { _ = bench.table.close(key) }
        #expect(bench.table.portion(of: 64) == 64)
    }

    @Test("a message beyond the grant is counted when it comes, and uses no slot of another")
    func beyond() throws {
        let bench = try Bench(2)
        bench.table.raise(1, by: 2, atMost: 64, portion: 64)
        bench.sent[0].store(1)
        bench.receive(1, 0)
        #expect(bench.table.outstanding == 2 && bench.grants[0].load() == 1 && !bench.table.maySend(0))
    }

    @Test(
        "whatever a client says that it has sent, only its own grant depends on it",
        arguments: [0, 1, 7, 8, 9, UInt64.max, UInt64(Int64.max), UInt64(1) << 63])
    func falseCount(said: UInt64) throws {
        let bench = try Bench(2)
        for index in 0..<2 { bench.table.raise(index, by: 8, atMost: 64, portion: 64) }
        bench.receive(2, 0)
        bench.sent[0].store(said)
        let onTheirWay = bench.table.onTheirWay(0)
        #expect(0...6 ~= onTheirWay)
        #expect(bench.takeBack(besides: 1) == (said < 8))
        #expect(bench.grants[1].load() == 8 && bench.table.outstanding == 8 + onTheirWay)
        _ = bench.table.close(1)
        #expect(bench.table.outstanding == 8)
    }

    @Test("a slot for which a sender has waited is not taken back before it is used, or the sender has given up")
    func awaited() throws {
        let bench = try Bench(2)
        bench.table.grantAwaited(0)
        bench.table.grantAwaited(0)
        #expect(!bench.takeBack(besides: 1) && bench.grants[0].load() == 2)
        bench.table.endAwaited(0)
        #expect(bench.takeBack(besides: 1) && bench.grants[0].load() == 1)
        bench.sent[0].store(1)
        bench.receive(1, 0)
        bench.table.endAwaited(0)
        bench.table.raise(0, by: 1, atMost: 1, portion: 64)
        #expect(bench.takeBack() && bench.table.outstanding == 0)
    }

    @Test("what makes no progress between two checks is taken back, whatever its client says; the rest stays")
    func stalled() throws {
        let bench = try Bench(3)
        for index in 0..<2 { bench.table.raise(index, by: 4, atMost: 64, portion: 64) }
        bench.table.grantAwaited(2)
        bench.sent[0].store(.max)
        bench.receive(1, 1)
        bench.table.takeBackStalled()
        // All of it was granted since the check before.
        #expect(bench.grants.map { $0.load() } == [4, 4, 1])
        bench.receive(1, 1)
        bench.table.takeBackStalled()
        #expect(bench.grants.map { $0.load() } == [0, 4, 0])
        // No slots were free for what has come over it.
        bench.receive(0, 1)
        bench.table.takeBackStalled()
        #expect(bench.grants[1].load() == 2 && bench.table.outstanding == 0)
    }

    @Test("what a client cannot see it is not granted")
    func unseen() throws {
        let bench = try Bench(1)
        let opened = bench.open(5, of: Self.owner)
        let index = try #require(opened)
        bench.receive(1, index)
        bench.table.raise(index, by: 64, atMost: 64, portion: 64)
        #expect(bench.table.outstanding == 0)
    }

    @Test("a number that another connection has is refused; one of a connection that has ended is free")
    func numbers() throws {
        let bench = try Bench(2)
        #expect(bench.open(2, of: Self.owner) == nil)
        _ = bench.table.close(2)
        #expect(bench.table.index(of: 2) == nil)
        #expect(bench.open(2, of: Self.owner) == 1)
        #expect(bench.table.owner(of: 2) == Self.owner && bench.table.owner(of: 3) == nil)
        // What the client of the ended one has mapped is not the new one's.
        #expect(!bench.isShared(1))
    }

    @Test("beyond the page no connection is granted anything")
    func beyondPage() throws {
        var table = CreditTable()
        table.page = try GrantPage()
        for key in 1...UInt64(GrantPage.count) { _ = table.open(key, of: Self.owner) }
        let opened = table.open(9_999, of: Self.owner)
        let isShared = table.share(try #require(opened), try SentCount.map(SentCount.make().file))
        #expect(!isShared)
        let file = try #require(table.page).file
        for index in [-1, GrantPage.count, Int.max, Int.min] {
            let isMapped = try GrantPage.map(file, at: index) != nil
            #expect(!isMapped)
        }
    }

    @Test("memory of another size, or without seals, is no page and no count")
    func foreignMemory() throws {
        let (_, count) = try SentCount.make()
        let words = try [
            GrantPage.map(count, at: 0), SentCount.map(GrantPage().file),
            SentCount.map(SharedDescriptor(sysPacketSocket())),
        ]
        #expect(!words.contains { $0 != nil })
    }
}
