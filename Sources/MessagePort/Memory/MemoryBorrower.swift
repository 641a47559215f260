// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What one end of a connection has borrowed of one lender, the borrower's half of it: the segments that it has mapped for
// reading, the page on which it notes what it has returned, and the end of a pipe, by which the kernel says that it has
// nothing any more. The port at the other end may move: then there is another lender.

import PortCLibrary
import PortSystem
import Synchronization

/// What a borrower needs of its connection.
protocol BorrowingConnection: AnyObject, Sendable {
    /// Sends a packet with a descriptor on the socket, if there is room now.
    func offerOnSocket(_ header: PacketHeader, _ descriptor: SharedDescriptor) -> Bool
    /// Sends a small packet, now or when there is room. Never waits.
    func enqueue(_ packet: OutgoingPacket)
}

final class MemoryBorrower: Sendable {
    /// How many segments a lender may have sent: more than one sends, whose notice that another has ended may come after
    /// the next one.
    static let segmentLimit = 2 * MemoryLender.segmentLimit
    /// How many segments the process maps in all: a part of the mappings that the kernel lets it have
    /// (`vm.max_map_count`, 65,530).
    static let mappingLimit = 16_384
    private static let mappingCount = Atomic<Int>(0)

    enum Outcome: Sendable {
        case borrowed(MessageMemory)
        /// The segment is unknown here, because its file was lost or cannot be mapped: its lender is notified.
        case lost
        /// It breaks the format.
        case malformed
    }

    private struct State {
        /// Few, so they are found by comparing: to hash a number costs more.
        var segments: [(number: UInt64, memory: BorrowedSegment)] = []
        var page: ReturnPage?
        /// Open while this object lives.
        var end: SharedDescriptor?

        func segment(_ number: UInt64) -> BorrowedSegment? {
            segments.first { $0.number == number }?.memory
        }
    }

    let lender: UInt64  // immutable
    private let state = Mutex(State())
    /// Retained until it ends.
    private let connection: ReleasableReference<any BorrowingConnection>

    init(from lender: UInt64, over connection: any BorrowingConnection) {
        self.lender = lender
        self.connection = ReleasableReference(connection)
    }

    /// Borrows what a message has. A segment's file and the end of a pipe come with its first loan.
    func borrow(_ record: LoanRecord, with descriptors: [SharedDescriptor]) -> Outcome {
        guard let connection = connection.object else { return .lost }
        var known = state.withLock { $0.segment(record.segment) }
        if known == nil, descriptors.count == 2 {
            do throws(SystemError) {
                guard let mapped = try BorrowedSegment(descriptors[0], size: record.segmentSize) else {
                    return .malformed
                }
                let hasRoom = state.withLock { state in
                    if state.segments.count >= Self.segmentLimit { return false }
                    state.segments.append((record.segment, mapped))
                    if state.end == nil { state.end = descriptors[1] }
                    return true
                }
                if !hasRoom { return .malformed }
                known = mapped
            } catch {}
        }
        guard let segment = known else {
            connection.enqueue(OutgoingPacket(header: .returned(record.number, to: lender, isSegmentUnknown: true)))
            return .lost
        }
        if segment.memory.size != record.segmentSize { return .malformed }
        let borrowed = BorrowedMemory(record, in: segment, page(over: connection), of: self)
        return .borrowed(MessageMemory(.borrowed(borrowed), count: record.count))
    }

    /// Memory that is about to be borrowed: of a segment that is mapped, and with the page on which it will be returned.
    struct PendingLoan: Sendable {
        let record: LoanRecord
        fileprivate let segment: BorrowedSegment
        fileprivate let page: ReturnPage
        fileprivate let borrower: MemoryBorrower

        consuming func borrow() -> MessageMemory {
            let count = record.count
            return MessageMemory(.borrowed(BorrowedMemory(record, in: segment, page, of: borrower)), count: count)
        }
    }

    /// What most messages have; nothing is borrowed yet.
    ///
    /// - Returns: nil when the segment or the page is missing, or the record is false: `borrow` does more.
    func pendingLoan(_ record: LoanRecord) -> PendingLoan? {
        state.withLock { state in
            guard let page = state.page, let segment = state.segment(record.segment),
                segment.memory.size == record.segmentSize
            else { return nil }
            return PendingLoan(record: record, segment: segment, page: page, borrower: self)
        }
    }

    /// The page, which is sent before anything is noted there; nil when there is none, or no room to send it now.
    private func page(over connection: any BorrowingConnection) -> ReturnPage? {
        if let page = state.withLock({ $0.page }) { return page }
        guard let (page, file) = try? ReturnPage.make(), connection.offerOnSocket(.returnPage(to: lender), file) else {
            return nil
        }
        state.withLock { $0.page = page }
        return page
    }

    /// For tests: how many segments are mapped.
    var segmentCount: Int { state.withLock { $0.segments.count } }

    /// The lender has given a segment up: nothing in it is lent.
    func didEnd(_ segment: UInt64) {
        let memory = state.withLock { state in
            state.segments.firstIndex { $0.number == segment }.map { state.segments.remove(at: $0) }
        }
        withExtendedLifetime(memory) {}  // unmapped without the lock
    }

    /// Returns a loan for which there is no page. Where the connection has ended, the end of the pipe returns it.
    fileprivate func sendReturn(_ number: UInt64) {
        connection.object?.enqueue(OutgoingPacket(header: .returned(number, to: lender, isSegmentUnknown: false)))
    }

    /// The connection has ended. What was borrowed stays readable, and is returned when it is released.
    func close() {
        connection.release()
        let segments = state.withLock { state in
            defer { state.segments = [] }
            return state.segments
        }
        withExtendedLifetime(segments) {}  // unmapped without the lock
    }

    /// A segment of another process, mapped for reading.
    fileprivate final class BorrowedSegment: Sendable {
        let memory: SharedMemory

        /// - Throws: when it cannot be mapped now.
        init?(_ file: SharedDescriptor, size: Int) throws(SystemError) {
            if mappingCount.add(1, ordering: .relaxed).newValue > mappingLimit {
                mappingCount.subtract(1, ordering: .relaxed)
                throw SystemError(ENOMEM)
            }
            do throws(SystemError) {
                if let memory = try SharedMemory.map(file, size: size, allocates: false) {
                    self.memory = memory
                    return
                }
            } catch {
                mappingCount.subtract(1, ordering: .relaxed)
                throw error
            }
            mappingCount.subtract(1, ordering: .relaxed)
            return nil
        }

        deinit { mappingCount.subtract(1, ordering: .relaxed) }
    }
}

/// Memory of another process, until this is deinitialized: then it is returned.
@safe final class BorrowedMemory: Sendable {
    private let segment: MemoryBorrower.BorrowedSegment  // immutable
    private let offset: Int  // immutable
    private let number: UInt64  // immutable
    private let page: ReturnPage?  // immutable
    private let borrower: MemoryBorrower  // immutable; its end of the pipe stays open
    private let forkGuard = ForkGuard()  // immutable

    fileprivate init(
        _ record: LoanRecord, in segment: MemoryBorrower.BorrowedSegment, _ page: ReturnPage?,
        of borrower: MemoryBorrower
    ) {
        (self.segment, offset, number) = (segment, record.offset, record.number)
        (self.page, self.borrower) = (page, borrower)
    }

    deinit {
        // A forked child shares the page with its parent, which has the memory.
        if forkGuard.isInherited { return }
        if let page { page.noteReturn(number) } else { borrower.sendReturn(number) }
    }

    @unsafe var start: UnsafeRawPointer { unsafe UnsafeRawPointer(segment.memory.base + offset) }
}
