// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A right's end that lends, and the port's end as a test has it.
private struct Lending {
    let pool: MemoryPool
    let right: SendRight
    let connection: SocketConnection
    let peer: RawPeer
    let listener: RawListener

    init(_ bench: Bench, capacity: Int = 1 << 20) throws {
        pool = MemoryPool(capacity: capacity)
        listener = try RawListener(bench.directory.path + "/raw")
        let remote = try #require(try RightsTable.connect(to: listener.address))
        connection = try remote.reached()
        connection.useRings(.never)
        connection.sender.credit.setUnlimited()
        right = SendRight(remote)
        peer = try listener.accept()
    }

    /// Lends memory, each time under the next number, from 1.
    func lend(_ byteCount: Int = 4096) throws { try right.send(MachMessage(memory: try pool.loan(byteCount).freeze())) }

    /// The lender's number.
    var lender: UInt64 { connection.sharedMemory.object?.lender.id ?? 0 }

    /// Has the right's end read what the peer has sent.
    func receive() { connection.receiveUnlessReceiving() }

    /// A page, on which the peer writes, and that it has sent.
    func sendPage() throws -> SharedMemory {
        let (memory, file) = try SharedMemory.make(size: 4096)
        try peer.send(.returnPage(to: lender), [], [file])
        receive()
        return memory
    }

    /// Whether the peer's breach has ended the connection.
    func isRefused() throws -> Bool {
        try peer.waitForEnd { receive() }
        return try peer.isRefused()
    }
}

extension SharedMemory {
    /// Writes a number on a page of returns: any, at any place.
    fileprivate func note(_ number: UInt64, at place: Int) {
        base.storeBytes(of: number, toByteOffset: place * 8, as: UInt64.self)
    }
}

/// What a peer may do that has borrowed memory.
@Suite("hostile borrowers of memory", .contract) struct HostileBorrowerTests {
    @Test("packets that return what was not lent are ignored, and those that return what was are not")
    func forgedPackets() async throws {
        try await onBench(over: .socket) { bench in
            let lending = try Lending(bench)
            try lending.lend()
            try lending.lend()
            for number: UInt64 in [3, 513, 514, .max] {
                try lending.peer.send(.returned(number, to: lending.lender, isSegmentUnknown: number == 513))
            }
            // Of another lender, perhaps one that this port had in another process.
            try lending.peer.send(.returned(1, to: lending.lender &+ 1, isSegmentUnknown: false))
            lending.receive()
            #expect(lending.pool.lentByteCount == 8192)
            try lending.peer.send(.returned(2, to: lending.lender, isSegmentUnknown: false))
            try lending.peer.send(.returned(2, to: lending.lender, isSegmentUnknown: true))
            lending.receive()
            #expect(lending.pool.lentByteCount == 4096)
            try lending.peer.send(.returned(1, to: lending.lender, isSegmentUnknown: false))
            lending.receive()
            #expect(lending.pool.lentByteCount == 0)
            #expect(!lending.connection.isClosed)
        }
    }

    @Test("numbers on the page of returns that were never lent are ignored; an early return harms its borrower alone")
    func forgedNumbers() async throws {
        try await onBench(over: .socket) { bench in
            let lending = try Lending(bench)
            let kept = try lending.pool.loan(4096).freeze()
            try lending.right.send(MachMessage(memory: kept))
            try lending.lend()
            let page = try lending.sendPage()
            for place in 0..<512 { page.note(UInt64.max - UInt64(place), at: place) }
            page.note(2, at: 1)  // at the place of another
            page.note(513, at: 1)
            page.note(514, at: 2)
            #expect(lending.pool.lentByteCount == 8192)
            page.note(2, at: 2)
            #expect(lending.pool.lentByteCount == 4096)
            // What this process retains is not returned by anybody else.
            page.note(1, at: 1)
            #expect(lending.pool.lentByteCount == 4096)
            #expect(kept.copy() == [UInt8](repeating: 0, count: 4096))
            // What was returned once is not returned again: the number of the next loan is another.
            try lending.lend()
            #expect(lending.pool.lentByteCount == 8192)
            page.note(3, at: 3)
            #expect(lending.pool.lentByteCount == 4096)
        }
    }

    enum PageBreach: CaseIterable, Sendable {
        case device, pipe, unsealed, partlySealed, shorter, longer, none, two, withBytes

        func commit(_ lending: RawPeer, _ lender: UInt64) throws {
            let page = try SharedMemory.make(size: 4096).file
            switch self {
            case .device:
                try lending.send(.returnPage(to: lender), [], [SharedDescriptor(try sysOpen("/dev/null", .reading))])
            case .pipe: try lending.send(.returnPage(to: lender), [], [try PresencePipe().reading])
            case .unsealed: try lending.send(.returnPage(to: lender), [], [try RawMemory.file(4096, seals: 0)])
            case .partlySealed:
                try lending.send(.returnPage(to: lender), [], [try RawMemory.file(4096, seals: RawMemory.withoutGrow)])
            case .shorter: try lending.send(.returnPage(to: lender), [], [try RawMemory.file(4095)])
            case .longer: try lending.send(.returnPage(to: lender), [], [try RawMemory.file(8192)])
            case .none: try lending.send(PacketHeader(kind: .returnPage))
            case .two:
                var header = PacketHeader.returnPage(to: lender)
                header.descriptorCount = 2
                try lending.send(header, [], [page, page])
            case .withBytes: try lending.send(.returnPage(to: lender), [1], [page])
            }
        }
    }

    @Test(
        "a page of returns that is none ends the connection, and all is returned when its peer is gone",
        arguments: PageBreach.allCases)
    func page(breach: PageBreach) async throws {
        try await onBench(over: .socket) { bench in
            let mappings = try mappedMemoryFiles()
            try expectNoNewDescriptors {
                var lending: Lending? = try Lending(bench)
                let pool = try #require(lending?.pool)
                defer { pool.finish() }
                guard let lending = lending.take() else { return }
                try lending.lend()
                try breach.commit(lending.peer, lending.lender)
                #expect(try lending.isRefused())
                #expect(lending.right.isDead)
            }
            #expect(try mappedMemoryFiles() == mappings)
        }
    }

    @Test("pages of returns for another lender, and more than processes that the port may have had, are ignored")
    func surplusPages() async throws {
        try await onBench(over: .socket) { bench in
            let lending = try Lending(bench)
            for _ in 0..<20 {
                try lending.peer.send(.returnPage(to: 7), [], [SharedMemory.make(size: 4096).file])
                lending.receive()
            }
            try lending.lend()
            for _ in 0..<20 {
                try lending.peer.send(.returnPage(to: lending.lender), [], [SharedMemory.make(size: 4096).file])
                lending.receive()
            }
            #expect(!lending.connection.isClosed && lending.pool.lentByteCount == 4096)
        }
    }

    @Test("holes in a page of returns are filled, so that reading it cannot fail")
    func sparsePage() async throws {
        try await onBench(over: .socket) { bench in
            let lending = try Lending(bench)
            try lending.lend()
            try lending.peer.send(.returnPage(to: lending.lender), [], [try RawMemory.file(4096, pages: 0..<0)])
            lending.receive()
            #expect(lending.pool.lentByteCount == 4096)
            #expect(!lending.connection.isClosed)
        }
    }

    @Test("a borrower that never releases costs the lender its pool's capacity at most, and its end gives all back")
    func neverReleases() async throws {
        try await onBench(over: .socket) { bench in
            let other = try bench.port()
            let rightOfOther = try bench.right(to: other)
            var lending: Lending? = try Lending(bench)
            let pool = try #require(lending?.pool)
            for _ in 0..<4 { try lending?.lend(256 << 10) }
            #expect(pool.lentByteCount == 1 << 20 && pool.reservedByteCount == 1 << 20)
            for _ in 0..<3 {
                #expect(portError { () throws(PortError) in _ = try pool.loan(1, within: .zero) }?.code == .poolFull)
            }
            #expect(pool.reservedByteCount == 1 << 20)
            // Copied messages are sent to it, and to others; and others have memory of other pools.
            try lending?.right.send(MachMessage(memory: MessageMemory([1, 2])))
            try rightOfOther.send(MachMessage(memory: MessageMemory([3])))
            #expect(try other.next().memory.first?.copy() == [3])
            let others = MemoryPool()
            try rightOfOther.send(MachMessage(memory: try others.loan(10).freeze()))
            #expect(try other.next().memory.first?.grade == .shared)
            lending = nil
            pool.waitUntilLent(0)
            try rightOfOther.send(MachMessage(memory: try pool.loan(1 << 20, within: .zero).freeze()))
            #expect(try other.next().memory.first?.count == 1 << 20)
            #expect(pool.reservedByteCount == 1 << 20)
        }
    }

    @Test("a borrower that is gone has returned everything, though its lender reads nothing but that")
    func gone() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, right, connection): (MemoryPool, SendRight, SocketConnection)
            do {
                let lending = try Lending(bench)
                try lending.lend(1 << 20)
                (pool, right, connection) = (lending.pool, lending.right, lending.connection)
                withExtendedLifetime(lending) {}
            }
            pool.finish()
            #expect(connection.isClosed && right.isDead)
        }
    }

    @Test("what would be one loan, or one segment, more than a borrower may have is copied")
    func tooManyLoans() async throws {
        try await onBench(over: .socket) { bench in
            let lending = try Lending(bench, capacity: 4 << 20)
            for _ in 0..<LendTable<Int>.limit {
                try lending.lend(1)
                _ = try lending.peer.nextPacket(.message)
            }
            #expect(lending.pool.lentByteCount == LendTable<Int>.limit * 4096)
            try lending.lend(1)
            // A copy of one byte, and a record's head.
            #expect(try lending.peer.nextPacket(.message)?.header.totalLength == 9)
            #expect(lending.pool.lentByteCount == LendTable<Int>.limit * 4096)
            for number in 1...UInt64(LendTable<Int>.limit) {
                try lending.peer.send(.returned(number, to: lending.lender, isSegmentUnknown: false))
                lending.receive()
            }
            #expect(lending.pool.lentByteCount == 0)
            lending.pool.trim()
            let pools = (0...MemoryLender.segmentLimit).map { _ in MemoryPool(capacity: 4096) }
            for pool in pools.dropLast() {
                try lending.right.send(MachMessage(memory: try pool.loan(1).freeze()))
                #expect(try lending.peer.nextPacket(.message)?.descriptors.count == 2)
                #expect(pool.lentByteCount == 4096)
            }
            try lending.right.send(MachMessage(memory: try pools[MemoryLender.segmentLimit].loan(1).freeze()))
            let copied = try lending.peer.nextPacket(.message)
            #expect(copied?.header.totalLength == 9 && copied?.descriptors.isEmpty == true)
            #expect(pools.last?.lentByteCount == 0)
            // One that was returned makes room for another.
            try lending.peer.send(.returned(513, to: lending.lender, isSegmentUnknown: false))
            lending.receive()
            try lending.right.send(MachMessage(memory: try pools[MemoryLender.segmentLimit].loan(1).freeze()))
            #expect(try lending.peer.nextPacket(.segmentEnded) != nil)
        }
    }
}
