// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// What a peer may do that says it lends memory: HostileBorrowerTests has those that borrow.
@Suite("hostile lenders of memory", .contract) struct HostileMemoryTests {
    /// What is no memory of a pool.
    enum Foreign: CaseIterable, Sendable {
        case device, pipe, socket, unsealed, partlySealed, sparse, halfAllocated, allocatedBeyondTheEnd, shorter, longer
        case ofOneByteMore

        func file() throws -> SharedDescriptor {
            switch self {
            case .device: SharedDescriptor(try sysOpen("/dev/null", .reading))
            case .pipe: try PresencePipe().writing
            case .socket: SharedDescriptor(try sysPacketSocket())
            case .unsealed: try RawMemory.file(8192, seals: 0)
            case .partlySealed: try RawMemory.file(8192, seals: RawMemory.withoutGrow)
            case .sparse: try RawMemory.file(8192, pages: 0..<0)
            case .halfAllocated: try RawMemory.file(8192, pages: 0..<4096)
            case .allocatedBeyondTheEnd: try RawMemory.file(8192, pages: 8192..<16_384)
            case .shorter: try RawMemory.file(4096)
            case .longer: try RawMemory.file(16_384)
            case .ofOneByteMore: try RawMemory.file(8193)
            }
        }
    }

    enum Breach: CaseIterable, Sendable {
        case numberZero, offsetBeyond, countBeyond, sumBeyond, offsetHuge, countHuge, sizeZero, sizeHuge, sizeOfAnother
        case fileMissing, endMissing, fileSurplus, afterBytes, afterReplyPort, headLonger, headShorter, cutShort,
            inLaterPacket
        case withoutComponent, componentWithoutLoan, componentWithBody, tooMany, tooManySegments

        func commit(_ peer: RawPeer, _ address: PortAddress) throws {
            let file = try RawMemory.file(8192)
            var records = RawRecords()
            switch self {
            case .numberZero: try peer.lend(LoanRecord(0), file)
            case .offsetBeyond: try peer.lend(LoanRecord(1, offset: 8193, count: 0), file)
            case .countBeyond: try peer.lend(LoanRecord(1, count: 8193), file)
            case .sumBeyond: try peer.lend(LoanRecord(1, offset: 8000, count: 193), file)
            case .offsetHuge, .countHuge:
                var numbers: [UInt64] = [9, 1, 1, 8192, 8, 8]
                numbers[self == .offsetHuge ? 4 : 5] = .max - 7
                records.append(.loanInNewSegment, numbers.flatMap(HostileMemoryTests.bytes), file)
                records.append(.lentMemory)
                try peer.send(records)
            case .sizeZero: try peer.lend(LoanRecord(1, size: 0, count: 0), file)
            case .sizeHuge: try peer.lend(LoanRecord(1, size: MemoryPool.largestLoan + 1), file)
            case .sizeOfAnother:
                try peer.lend(LoanRecord(1), file)
                try peer.lend(LoanRecord(2, size: 16_384))
            case .fileMissing:
                records.append(.loanInNewSegment, LoanRecord(1).bytes)
                records.append(.lentMemory)
                try peer.send(records)
            case .endMissing:
                records.append(.loanInNewSegment, LoanRecord(1).bytes, file)
                records.append(.lentMemory)
                try peer.send(records)
            case .fileSurplus:
                records.append(LoanRecord(1), file)
                records.append(.lentMemory, [], file)
                try peer.send(records)
            case .afterBytes:
                records.append(.bytes, [1])
                records.append(LoanRecord(1), file)
                records.append(.lentMemory)
                try peer.send(records)
            case .afterReplyPort:
                records.append(.replyPort, Array(address.path.utf8))
                records.append(LoanRecord(1), file)
                records.append(.lentMemory)
                try peer.send(records)
            case .headLonger, .headShorter:
                let length = LoanRecord.size + (self == .headLonger ? 8 : -8)
                records.append(.loan, length: length, LoanRecord(1).bytes)
                records.append(.lentMemory)
                try peer.send(records)
            case .cutShort:
                records.append(.loan, length: LoanRecord.size, Array(LoanRecord(1).bytes.dropLast()))
                try peer.send(records)
            case .inLaterPacket:
                records.append(LoanRecord(1), file)
                let count = records.payload.count
                records.append(LoanRecord(2))
                records.append(.lentMemory)
                try peer.send(records.header(), Array(records.payload.prefix(count)), records.files)
                try peer.send(PacketHeader(kind: .continuation), Array(records.payload.dropFirst(count)))
            case .withoutComponent:
                records.append(LoanRecord(1), file)
                records.append(LoanRecord(2))
                records.append(.lentMemory)
                try peer.send(records)
            case .componentWithoutLoan:
                records.append(.lentMemory)
                try peer.send(records)
            case .componentWithBody:
                records.append(LoanRecord(1), file)
                records.append(.lentMemory, [1])
                try peer.send(records)
            case .tooMany:
                try peer.lend(LoanRecord(1), file)
                for number in 0...LoanRecord.limit { records.append(LoanRecord(2 + UInt64(number))) }
                for _ in 0...LoanRecord.limit { records.append(.lentMemory) }
                try peer.send(records)
            case .tooManySegments:
                for number in 1...UInt64(MemoryBorrower.segmentLimit + 1) {
                    try peer.lend(LoanRecord(number, segment: number, size: 4096), try RawMemory.file(4096))
                }
            }
        }

        /// How many messages come before it that are none.
        var honestCount: Int {
            switch self {
            case .sizeOfAnother, .tooMany: 1
            case .tooManySegments: MemoryBorrower.segmentLimit
            default: 0
            }
        }
    }

    /// What is no sealed memory, or is announced as none.
    enum Unsealed: CaseIterable, Sendable {
        case device, ofPool, writable, shorter, sparse, allocatedBeyondTheEnd, countHuge
        case bodyShort, bodyLong, fileMissing

        func commit(_ peer: RawPeer) throws {
            let file: SharedDescriptor? =
                switch self {
                case .device: SharedDescriptor(try sysOpen("/dev/null", .reading))
                case .ofPool: try RawMemory.file(8192)
                case .writable: try RawMemory.file(8192, seals: 0)
                case .shorter: try RawMemory.file(8191, seals: RawMemory.contentSeals)
                case .sparse: try RawMemory.file(8192, pages: 0..<4096, seals: RawMemory.contentSeals)
                case .allocatedBeyondTheEnd:
                    try RawMemory.file(8192, pages: 8192..<16_384, seals: RawMemory.contentSeals)
                case .countHuge, .bodyShort, .bodyLong: try RawMemory.file(8192, seals: RawMemory.contentSeals)
                case .fileMissing: nil
                }
            var (count, records): ([UInt8], RawRecords) = ([], RawRecords())
            count.append(littleEndian: self == .countHuge ? UInt64.max : 8192)
            if self == .bodyShort { count.removeLast() }
            if self == .bodyLong { count.append(0) }
            records.append(.sealedMemory, count, file)
            try peer.send(records)
        }
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: number)
        return bytes
    }

    /// Has a peer do something, and expects that its connection is refused, and that nothing of it is left.
    private func expectRefusal(
        on bench: Bench, honestCount: Int = 0, _ commit: @escaping @Sendable (RawPeer, PortAddress) throws -> Void
    ) throws {
        let port = try bench.port()
        let address = try port.localPort.address(in: bench.directory)
        _ = try port.tryReceive()
        let mappings = try mappedMemoryFiles()
        try expectNoNewDescriptors {
            let peer = try RawPeer(to: port, on: bench)
            let sender = runOnThread { try commit(peer, address) }
            for _ in 0..<honestCount { try port.expectMemory() }
            try sender.join()
            try peer.waitForEnd { try port.expectNone() }
            #expect(try peer.isRefused())
            waitUntilDescriptorsAreClosed()
        }
        #expect(try mappedMemoryFiles() == mappings)
        // Others are served.
        try bench.right(to: port).send(MachMessage(id: 9))
        #expect(try port.next().id == 9)
    }

    @Test("a file that is no memory of a pool is refused, and nothing of it is left", arguments: Foreign.allCases)
    func foreign(file: Foreign) async throws {
        try await onBench(over: .socket) { bench in
            try expectRefusal(on: bench) { peer, _ in try peer.lend(LoanRecord(1), file.file()) }
        }
    }

    @Test("a loan that breaks the format ends the connection, and leaves nothing", arguments: Breach.allCases)
    func breach(_ breach: Breach) async throws {
        try await onBench(over: .socket) { bench in
            try expectRefusal(on: bench, honestCount: breach.honestCount) { peer, address in
                try breach.commit(peer, address)
            }
        }
    }

    @Test(
        "sealed memory that is not what was announced ends the connection, and leaves nothing",
        arguments: Unsealed.allCases)
    func unsealed(_ unsealed: Unsealed) async throws {
        try await onBench(over: .socket) { bench in
            try expectRefusal(on: bench) { peer, _ in try unsealed.commit(peer) }
        }
    }

    @Test("memory as the format has it is accepted of any peer: what it lends, and what is sealed")
    func honest() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.lend(LoanRecord(1, offset: 8190, count: 2), try RawMemory.file(8192))
            #expect(try port.next().memory.map { $0.copy() } == [[0, 0]])
            try peer.lend(LoanRecord(2, offset: 8192, count: 0))
            #expect(try port.next().memory.map { $0.copy() } == [[]])
            var (count, records): ([UInt8], RawRecords) = ([], RawRecords())
            count.append(littleEndian: 5 as UInt64)
            records.append(.sealedMemory, count, try RawMemory.file(8192, seals: RawMemory.contentSeals))
            try peer.send(records)
            #expect(try port.next().memory.map { $0.copy() } == [[0, 0, 0, 0, 0]])
        }
    }

    @Test("a message with a segment that was never sent is lost, its lender is notified, and the next ones arrive")
    func neverSent() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.lend(LoanRecord(7, segment: 3), asks: 5)
            try peer.waitForPacket { try port.expectNone() }
            let returned = try peer.nextPacket(.returned)?.header
            #expect(returned?.asks == 7 && returned?.componentCount == 1)
            let dropped = try peer.nextPacket(.replyDropped)?.header
            #expect(dropped?.answers == 5 && dropped?.messageID == Int32(PortError.Code.descriptorsLost.rawValue))
            try peer.lend(LoanRecord(8, segment: 3), try RawMemory.file(8192))
            #expect(try port.next().memory.first?.count == 10)
            _ = try peer.nextPacket(.returnPage)
            // A segment that has ended is unknown again.
            try peer.send(.segmentEnded(3, of: RawMemory.lender))
            try peer.lend(LoanRecord(9, segment: 3))
            try peer.waitForPacket { try port.expectNone() }
            #expect(try peer.nextPacket(.returned)?.header.asks == 9)
        }
    }

    @Test("the end of a segment that nobody knows is ignored; packets about memory with what they do not have are not")
    func malformedPackets() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let harmless = try RawPeer(to: port, on: bench)
            try harmless.send(.segmentEnded(7, of: RawMemory.lender))
            try harmless.send(.returned(7, to: 1, isSegmentUnknown: true))
            try harmless.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
            var (claim, end) = (
                PacketHeader.returned(7, to: 1, isSegmentUnknown: false),
                PacketHeader.segmentEnded(7, of: RawMemory.lender)
            )
            claim.componentCount = 2
            end.asks = 0
            for header in [claim, end, .returned(0, to: 1, isSegmentUnknown: false)] {
                try expectRefusal(on: bench) { peer, _ in try peer.send(header) }
            }
            for header in [
                PacketHeader.returned(7, to: 1, isSegmentUnknown: false), .segmentEnded(7, of: RawMemory.lender),
            ] {
                try expectRefusal(on: bench) { peer, _ in try peer.send(header, [1]) }
            }
        }
    }

    @Test("a server that replies with no memory ends the connection: the request fails", arguments: Foreign.allCases)
    func hostileServer(file: Foreign) async throws {
        try await onBench(over: .socket) { bench in
            let (right, thread) = try bench.rawListener { peer in
                guard let request = try peer.nextPacket(.message)?.header else { throw NothingCame() }
                try peer.lend(LoanRecord(1), file.file(), answers: request.asks)
                #expect(try peer.isRefused())
            }
            let error = portError { () throws(PortError) in _ = try right.ask(MachMessage(id: 1)) }
            #expect(error?.code == .malformedPacket)
            #expect(right.isDead)
            try thread.join()
            #expect(try mappedMemoryFiles().filter { $0.contains("port-raw") } == [])
        }
    }
}
