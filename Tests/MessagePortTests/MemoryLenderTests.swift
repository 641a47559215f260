// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("MemoryLender", .leakCheck) struct MemoryLenderTests {
    /// A connection that sends nothing.
    private final class Connection: LendingConnection {
        func receiveUnlessReceiving() -> Bool { false }
        func enqueue(_ packet: OutgoingPacket) {}
        func chargeLoan(of byteCount: Int, _ charge: inout LoanCharge?) -> Bool { true }
        func watchHangUp(of pipe: SharedDescriptor, _ notify: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?
        {
            nil
        }
    }

    private func slot(of pool: MemoryPool) throws -> MemorySlot {
        guard case .slot(let slot) = try pool.loan(1).freeze().storage else { throw PortError(.malformedContent) }
        return slot
    }

    @Test("the file of a segment goes with each message until one was sent, and never again")
    func file() throws {
        let (lender, pool) = (MemoryLender(over: Connection()), MemoryPool())
        defer {
            for number in 1...4 { lender.didReturn(UInt64(number), isSegmentUnknown: false) }
            lender.close()
        }
        let first = try #require(lender.lend(try slot(of: pool), count: 1, mayBringFile: true))
        let second = try #require(lender.lend(try slot(of: pool), count: 1, mayBringFile: true))
        #expect(
            first.descriptors.count == 2 && second.descriptors.count == 2 && first.record.number == 1
                && second.record.number == 2)
        lender.withdraw([first])
        #expect(lender.lend(try slot(of: pool), count: 1, mayBringFile: true)?.descriptors.count == 2)
        lender.didSend([second])
        #expect(lender.lend(try slot(of: pool), count: 1, mayBringFile: true)?.descriptors.isEmpty == true)
    }

    @Test("only what the borrower has is lent as known: not before its file was sent, after a move, or at the end")
    func known() throws {
        let (lender, pool) = (MemoryLender(over: Connection()), MemoryPool())
        #expect(lender.lendKnown(try slot(of: pool), count: 1, nil) == nil)
        let first = try #require(lender.lend(try slot(of: pool), count: 1, mayBringFile: true))
        #expect(lender.lendKnown(try slot(of: pool), count: 1, nil) == nil)
        lender.didSend([first])
        let second = try #require(lender.lendKnown(try slot(of: pool), count: 1, nil))
        #expect(second.number == 2 && second.segment == first.record.segment && second.offset != first.record.offset)
        #expect(pool.lentByteCount == 2 * 4096)
        lender.withdraw(second)
        #expect(pool.lentByteCount == 4096)
        lender.borrowerMayHaveMoved()
        #expect(lender.lendKnown(try slot(of: pool), count: 1, nil) == nil)
        lender.withdraw(first.record)
        lender.close()
        #expect(lender.lendKnown(try slot(of: pool), count: 1, nil) == nil)
        #expect(pool.lentByteCount == 0 && pool.lenderCount == 0)
    }

    @Test("a borrower that has lost the file before its sender knows that the message was sent gets it again")
    func lostBeforeSent() throws {
        let (lender, pool) = (MemoryLender(over: Connection()), MemoryPool())
        defer {
            for number in 1...4 { lender.didReturn(UInt64(number), isSegmentUnknown: false) }
            lender.close()
        }
        let lost = try #require(lender.lend(try slot(of: pool), count: 1, mayBringFile: true))
        lender.didReturn(lost.record.number, isSegmentUnknown: true)
        lender.didSend([lost])
        #expect(lender.lend(try slot(of: pool), count: 1, mayBringFile: true)?.descriptors.count == 2)
    }
}
