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
        /// Whether a message with its file was sent as a whole.
        var isKnown = false
        var loanCount = 0
        let pool: ObjectIdentifier
    }

    private struct State {
        var table = LendTable<Loan>()
        /// Where the borrower notes what it has returned.
        var pages: [ReturnPage] = []
        var segments: [UInt64: Segment] = [:]
        /// Segments that were forgotten, and of which the borrower is not notified yet.
        var leaving: Set<UInt64> = []
        /// How often the borrower may have moved.
        var moveCount = 0
        var pools: [ObjectIdentifier: MemoryPool] = [:]
        /// The read end reports that nobody has any of it.
        var pipe: SharedDescriptor?
        /// Released when nothing is lent any more, because the connection has ended.
        var end: SharedDescriptor?
        /// Ends the watch of the pipe.
        var unwatch: (@Sendable () -> Void)?
        var mayLend = true
        /// How many files the borrower has lost.
        var lostFileCount = 0

        mutating func remove(_ number: UInt64) -> Loan? {
            guard let loan = table.remove(number) else { return nil }
            segments[loan.slot.segment.number]?.loanCount -= 1
            return loan
        }

        mutating func removeAll(where isReturned: (UInt64) -> Bool) -> [Loan] {
            let loans = table.removeAll(where: isReturned)
            for loan in loans { segments[loan.slot.segment.number]?.loanCount -= 1 }
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
            var ended: UInt64?
            if state.segments[segment.number] == nil, state.segments.count >= Self.segmentLimit {
                // One of which nothing is lent makes room.
                ended = state.segments.first { $0.value.loanCount == 0 }?.key
                guard let ended else { return nil }
                state.segments[ended] = nil
                state.leaving.insert(ended)
            }
            let isKnown = state.segments[segment.number]?.isKnown ?? false
            let bringsFile = !isKnown && mayBringFile
            let loan = Loan(slot: slot, charge: charge, broughtFile: bringsFile)
            guard let number = state.table.add(loan) else { return nil }
            state.segments[segment.number, default: Segment(pool: ObjectIdentifier(pool))].loanCount += 1
            let record = LoanRecord(
                lender: id, number: number, segment: segment.number, segmentSize: segment.size, offset: slot.offset,
                count: count)
            // Under the lock: so each of the two knows the other, or neither does.
            let isFirst = state.pools.updateValue(pool, forKey: ObjectIdentifier(pool)) == nil
            let mustSetAlarm = isFirst && pool.add(self)
            let lent = LentMemory(
                record: record, descriptors: bringsFile ? [file, end] : [], moveCount: state.moveCount)
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
                if state.table.contains(loan.record.number) { state.segments[loan.record.segment]?.isKnown = true }
            }
        }
    }

    /// The message with these loans was not sent.
    func withdraw(_ loans: [LentMemory]) {
        let ended = state.withLock { state in loans.compactMap { state.remove($0.record.number) } }
        withExtendedLifetime(ended) {}  // released without the lock
        leavePoolsIfDone()
    }

    /// The borrower says that a loan is returned; and whether it does not know the segment.
    func didReturn(_ number: UInt64, isSegmentUnknown: Bool) {
        let loan = state.withLock { state in
            let loan = state.remove(number)
            if isSegmentUnknown, let loan {
                state.segments[loan.slot.segment.number]?.isKnown = false
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
            for number in state.segments.keys { state.segments[number]?.isKnown = false }
        }
    }

    /// Segments of a pool end, in which nothing is lent.
    func didEnd(_ segments: [UInt64]) {
        if forkGuard.isInherited { return }
        let known = state.withLock { state in segments.filter { state.segments.removeValue(forKey: $0) != nil } }
        for number in known { connection.object?.enqueue(OutgoingPacket(header: .segmentEnded(number, of: id))) }
        leavePoolsIfDone()
    }

    /// Takes back what the borrower has returned; with `isThorough` also what it has said, or the kernel.
    func collectReturned(isThorough: Bool) {
        if forkGuard.isInherited || !isLending { return }
        if removeReturned() {
            // After the end of the connection nothing else removes it from its pools.
            if connection.object == nil { leavePoolsIfDone() }
            return
        }
        if !isThorough { return }
        // Perhaps its page has come, or the end.
        connection.object?.receiveUnlessReceiving()
        removeAllIfAbandoned()
        _ = removeReturned()
        leavePoolsIfDone()
    }

    /// - Returns: whether there were any.
    private func removeReturned() -> Bool {
        let returned = state.withLock { state in
            let pages = state.pages
            return pages.isEmpty ? [] : state.removeAll { number in pages.contains { $0.hasReturned(number) } }
        }
        return !returned.isEmpty  // released without the lock
    }

    /// Takes everything back when no process has any of it.
    private func removeAllIfAbandoned() {
        guard let pipe = state.withLock({ $0.end == nil ? $0.pipe : nil }) else { return }
        let events = (try? sysPoll(pipe.rawValue, .readable, until: .distantPast)) ?? []
        if events.isDisjoint(with: [.hangUp, .error]) { return }
        let loans = state.withLock { $0.removeAll { _ in true } }
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
            for segment in state.segments.values where !hasEnded || segment.loanCount > 0 {
                needed.insert(segment.pool)
            }
            let left = state.pools.filter { !needed.contains($0.key) }
            for (key, pool) in left {
                state.pools[key] = nil
                pool.remove(self)
            }
            let isDone = hasEnded && state.table.count == 0
            if isDone { state.pages = [] }
            return (Array(left.values), isDone ? state.unwatch.take() : nil)
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
