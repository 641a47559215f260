// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What one end of a connection has lent to the other, the lender's half of it. A loan is lent before the message is sent
// that has it, and returned when
//
//   the borrower has released it   it notes that on its page; found when a pool needs room, or by an alarm
//   the borrower says so           in a packet: it has no page, or could not map the memory
//   the message was not sent
//   no process has any of it       the write end of a pipe travels with each new segment: the kernel closes the ends of
//                                  a process that ends, and those in messages that nobody reads any more. When this end
//                                  of the connection has closed too, the read end hangs up
//
// The end of the connection alone returns nothing: what was received stays the receiver's. So the lender outlives it, at
// its pools, until all is returned.

import PortSystem
import Synchronization

/// What a lender needs of its connection.
protocol LendingConnection: AnyObject, Sendable {
    /// Receives what has come, if no other thread does: perhaps the page of the borrower, or the end.
    @discardableResult
    func receiveUnlessReceiving() -> Bool
    /// Sends a small packet, now or when there is room. Never waits.
    func enqueue(_ packet: OutgoingPacket)
    /// Charges the borrower's account, if it has one here.
    ///
    /// - Returns: false when it has too much already.
    func chargeLoan(of byteCount: Int, _ charge: inout LoanCharge?) -> Bool
    /// Calls `notify` once, on the I/O thread, when a pipe hangs up. What it retains is retained until then.
    ///
    /// - Returns: ends that; nil when the pipe cannot be watched.
    func watchHangUp(of pipe: SharedDescriptor, _ notify: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?
}

/// A loan that a message has.
struct LentMemory: Sendable {
    let record: LoanRecord
    /// The segment's file, and the end of the pipe; none where the borrower has them.
    var descriptors: [SharedDescriptor]
    /// How often the borrower may have moved before.
    let moveCount: Int
}

final class MemoryLender: Sendable {
    /// How many segments a borrower has at a time.
    static let segmentLimit = 32
    /// How many pages it may send: one, and another for each process to which its port has moved.
    private static let pageLimit = 8

    /// How many files it may lose.
    private static let lostFileLimit = 4

    /// What is lent, until it is returned.
    private struct Loan: Sendable {
        let slot: MemorySlot
        let charge: LoanCharge?
        let broughtFile: Bool
    }

    /// A segment that was sent.
    private struct Segment {
        let number: UInt64
        /// Whether a message with its file was sent as a whole.
        var isKnown = false
        var loanCount = 0
        let pool: ObjectIdentifier
    }

    private struct State {
        var table = LendTable<Loan>()
        /// Where the borrower notes what it has returned.
        var pages: [ReturnPage] = []
        /// Few, so they are found by comparing: to hash a number costs more.
        var segments: [Segment] = []
        /// Segments that were forgotten, and of which the borrower is not notified yet.
        var leaving: Set<UInt64> = []
        /// How often the borrower may have moved.
        var moveCount = 0
        var pools: [MemoryPool] = []
        /// The read end reports that nobody has any of it.
        var pipe: SharedDescriptor?
        /// Released when nothing is lent any more, because the connection has ended.
        var end: SharedDescriptor?
        /// Ends the watch of the pipe.
        var unwatch: (@Sendable () -> Void)?
        var mayLend = true
        /// How many files the borrower has lost.
        var lostFileCount = 0

        func position(of segment: UInt64) -> Int? { segments.firstIndex { $0.number == segment } }

        /// - Returns: the number of the loan, of a segment that is listed; nil when there are too many.
        mutating func add(_ loan: Loan, ofSegmentAt position: Int) -> UInt64? {
            guard let number = table.add(loan) else { return nil }
            segments[position].loanCount += 1
            return number
        }

        mutating func remove(_ number: UInt64) -> Loan? {
            guard let loan = table.remove(number) else { return nil }
            didRemove(loan)
            return loan
        }

        private mutating func didRemove(_ loan: Loan) {
            if let position = position(of: loan.slot.segment.number) { segments[position].loanCount -= 1 }
        }

        /// One loan that the borrower's pages say is returned: see `LendTable.removeLast`.
        mutating func removeReturned(before position: inout Int) -> Loan? {
            if pages.isEmpty { return nil }
            let pages = pages
            let loan = table.removeLast(before: &position) { number in pages.contains { $0.hasReturned(number) } }
            if let loan { didRemove(loan) }
            return loan
        }

        mutating func removeAll() -> [Loan] {
            let loans = table.removeAll { _ in true }
            for loan in loans { didRemove(loan) }
            return loans
        }
    }

    /// Distinguishes it from every other lender.
    let id = UInt64.random(in: 1 ... .max)
    private let state = Mutex(State())
    /// Retained until it ends.
    private let connection: ReleasableReference<any LendingConnection>
    private let forkGuard = ForkGuard()  // immutable

    init(over connection: any LendingConnection) { self.connection = ReleasableReference(connection) }

    /// Whether something is lent.
    var isLending: Bool { state.withLock { $0.table.count > 0 } }

    /// Lends memory to the other side, with a message that is about to be sent. Of a message's loans only the first of
    /// a segment `mayBringFile`.
    ///
    /// - Returns: nil when it cannot be lent: it is to be copied.
    func lend(_ slot: MemorySlot, count: Int, mayBringFile: Bool) -> LentMemory? {
        guard let file = slot.segment.file, let connection = connection.object, makePipe() else { return nil }
        var charge: LoanCharge?
        if !connection.chargeLoan(of: count, &charge) {
            _ = removeReturned()
            if !connection.chargeLoan(of: count, &charge) { return nil }
        }
        let (segment, pool) = (slot.segment, slot.pool)
        let result = state.withLock { state -> (LentMemory, mustSetAlarm: Bool, ended: UInt64?)? in
            guard state.mayLend, let end = state.end, !state.leaving.contains(segment.number) else { return nil }
            if state.table.isFull { return nil }
            var ended: UInt64?
            var position = state.position(of: segment.number)
            if position == nil, state.segments.count >= Self.segmentLimit {
                // One of which nothing is lent makes room.
                guard let idle = state.segments.firstIndex(where: { $0.loanCount == 0 }) else { return nil }
                ended = state.segments.remove(at: idle).number
                if let ended { state.leaving.insert(ended) }
            }
            if position == nil {
                position = state.segments.count
                state.segments.append(Segment(number: segment.number, pool: ObjectIdentifier(pool)))
            }
            guard let position else { return nil }
            let bringsFile = !state.segments[position].isKnown && mayBringFile
            let loan = Loan(slot: slot, charge: charge, broughtFile: bringsFile)
            guard let number = state.add(loan, ofSegmentAt: position) else { return nil }
            // Under the lock: so each of the two knows the other, or neither does.
            let isFirst = !state.pools.contains { $0 === pool }
            if isFirst { state.pools.append(pool) }
            let mustSetAlarm = isFirst && pool.add(self)
            let lent = LentMemory(
                record: record(of: slot, number, count), descriptors: bringsFile ? [file, end] : [],
                moveCount: state.moveCount)
            return (lent, mustSetAlarm, ended)
        }
        guard let (memory, mustSetAlarm, ended) = result else { return nil }
        if mustSetAlarm { pool.setAlarm() }
        if let ended {
            connection.enqueue(OutgoingPacket(header: .segmentEnded(ended, of: id)))
            _ = state.withLock { $0.leaving.remove(ended) }
        }
        return memory
    }

    /// Lends memory of a segment that the borrower knows, which is charged: most loans.
    ///
    /// - Returns: nil when it does not know the segment, or it cannot be lent now: `lend` does more.
    func lendKnown(_ slot: MemorySlot, count: Int, _ charge: LoanCharge?) -> LoanRecord? {
        let number = state.withLock { state -> UInt64? in
            guard state.mayLend, let position = state.position(of: slot.segment.number),
                state.segments[position].isKnown, state.pools.contains(where: { $0 === slot.pool })
            else { return nil }
            return state.add(Loan(slot: slot, charge: charge, broughtFile: false), ofSegmentAt: position)
        }
        return number.map { record(of: slot, $0, count) }
    }

    private func record(of slot: MemorySlot, _ number: UInt64, _ count: Int) -> LoanRecord {
        LoanRecord(
            lender: id, number: number, segment: slot.segment.number, segmentSize: slot.segment.size,
            offset: slot.offset, count: count)
    }

    /// - Returns: whether there is one.
    private func makePipe() -> Bool {
        if state.withLock({ $0.end != nil || !$0.mayLend }) { return true }
        guard let pipe = try? PresencePipe() else { return false }
        state.withLock { state in
            if state.end == nil, state.mayLend { (state.pipe, state.end) = (pipe.reading, pipe.writing) }
        }
        return true
    }

    /// The message with these loans was sent. What was returned since may have been lost on the way, with its file.
    func didSend(_ loans: [LentMemory]) {
        state.withLock { state in
            for loan in loans where !loan.descriptors.isEmpty && loan.moveCount == state.moveCount {
                guard state.table.contains(loan.record.number),
                    let position = state.position(of: loan.record.segment)
                else { continue }
                state.segments[position].isKnown = true
            }
        }
    }

    /// The message with these loans was not sent.
    func withdraw(_ loans: [LentMemory]) { for loan in loans { withdraw(loan.record) } }

    /// The message with this loan was not sent.
    func withdraw(_ record: LoanRecord) { didReturn(record.number, isSegmentUnknown: false) }

    /// The borrower says that a loan is returned; and whether it does not know the segment.
    func didReturn(_ number: UInt64, isSegmentUnknown: Bool) {
        let loan = state.withLock { state in
            let loan = state.remove(number)
            if isSegmentUnknown, let loan {
                if let position = state.position(of: loan.slot.segment.number) {
                    state.segments[position].isKnown = false
                }
                // It came with the file, which was lost, or cannot be mapped: when that happens again and again, memory is
                // copied.
                if loan.broughtFile { state.lostFileCount += 1 }
                if state.lostFileCount >= Self.lostFileLimit { state.mayLend = false }
            }
            return loan
        }
        withExtendedLifetime(loan) {}  // released without the lock
        leavePoolsIfDone()
    }

    /// The borrower's page has come.
    ///
    /// - Returns: false when it is none.
    func accept(_ file: SharedDescriptor?) -> Bool {
        let hasRoom = state.withLock { $0.pages.count < Self.pageLimit }
        do throws(SystemError) {
            if let file, hasRoom {
                guard let page = try ReturnPage.map(file) else { return false }
                state.withLock { $0.pages.append(page) }
                return true
            }
        } catch {}
        // What was lent stays so until nobody has any of it; memory is copied from now on.
        state.withLock { $0.mayLend = false }
        return true
    }

    /// The port may have moved: then its new process knows no segment.
    func borrowerMayHaveMoved() {
        state.withLock { state in
            state.moveCount += 1
            for position in state.segments.indices { state.segments[position].isKnown = false }
        }
    }

    /// Segments of a pool end, in which nothing is lent.
    func didEnd(_ segments: [UInt64]) {
        if forkGuard.isInherited { return }
        let known = state.withLock { state in
            defer { state.segments.removeAll { segments.contains($0.number) } }
            return segments.filter { state.position(of: $0) != nil }
        }
        for number in known { connection.object?.enqueue(OutgoingPacket(header: .segmentEnded(number, of: id))) }
        leavePoolsIfDone()
    }

    /// Takes back what the borrower has returned; with `isThorough` also what it has said, or the kernel.
    func collectReturned(isThorough: Bool) {
        if forkGuard.isInherited { return }
        if removeReturned() {
            // After the end of the connection nothing else removes it from its pools.
            if connection.object == nil { leavePoolsIfDone() }
            return
        }
        if !isThorough || !isLending { return }
        // Perhaps its page has come, or the end.
        connection.object?.receiveUnlessReceiving()
        removeAllIfAbandoned()
        _ = removeReturned()
        leavePoolsIfDone()
    }

    /// - Returns: whether there were any.
    private func removeReturned() -> Bool {
        var (position, hasRemoved) = (Int.max, false)
        while position > 0, let loan = state.withLock({ $0.removeReturned(before: &position) }) {
            hasRemoved = true
            withExtendedLifetime(loan) {}  // released without the lock
        }
        return hasRemoved
    }

    /// Takes everything back when no process has any of it.
    private func removeAllIfAbandoned() {
        guard let pipe = state.withLock({ $0.end == nil ? $0.pipe : nil }) else { return }
        let events = (try? sysPoll(pipe.rawValue, .readable, until: .distantPast)) ?? []
        if events.isDisjoint(with: [.hangUp, .error]) { return }
        let loans = state.withLock { $0.removeAll() }
        withExtendedLifetime(loans) {}  // released without the lock
    }

    /// The peer is gone, or the connection: nothing more is lent. What was received stays its receiver's until that
    /// notes it on its page, or the pipe hangs up.
    func endLending() { endLending(over: connection.object) }

    private func endLending(over connection: (any LendingConnection)?) {
        let (end, pipe) = state.withLock { state in
            state.mayLend = false
            return (state.end.take(), state.pipe)
        }
        guard let end, let pipe else { return }
        withExtendedLifetime(end) {}  // closed without the lock
        if isLending, let unwatch = connection?.watchHangUp(of: pipe, { self.collectReturned(isThorough: true) }) {
            state.withLock { $0.unwatch = unwatch }
        }
        collectReturned(isThorough: true)
    }

    /// The connection has ended.
    func close() {
        endLending(over: connection.release())
        leavePoolsIfDone()
    }

    /// Pools and lender know each other while something is lent, or a segment is known.
    private func leavePoolsIfDone() {
        let hasEnded = connection.object == nil
        let (left, unwatch) = state.withLock { state -> ([MemoryPool], (@Sendable () -> Void)?) in
            var needed: Set<ObjectIdentifier> = []
            for segment in state.segments where !hasEnded || segment.loanCount > 0 {
                needed.insert(segment.pool)
            }
            let left = state.pools.filter { !needed.contains(ObjectIdentifier($0)) }
            state.pools.removeAll { !needed.contains(ObjectIdentifier($0)) }
            for pool in left { pool.remove(self) }
            let isDone = hasEnded && state.table.count == 0
            if isDone { state.pages = [] }
            return (left, isDone ? state.unwatch.take() : nil)
        }
        unwatch?()
        withExtendedLifetime(left) {}  // released without the lock
    }
}

/// The charge of a loan to the borrower's account, until it is returned.
final class LoanCharge: Sendable {
    private let charge: PeerCharge

    init(_ charge: consuming PeerCharge) { self.charge = charge }
}
