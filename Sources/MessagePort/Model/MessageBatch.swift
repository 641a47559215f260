// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// @unchecked: while it is closed, the holder of the queue's lock owns all of it. While it is open, a slot of the lease
// belongs to the thread that has drawn its number from `position`: the handler's thread, or the thread that has closed
// the lease and owns all slots from there on, which the former only reads (`fetchAhead`). All else is written under the
// lock while it is closed.
/// The oldest messages of a queue, leased to the thread of a handler, which dequeues them one after the other without
/// the queue's lock.
@safe final class MessageBatch: @unchecked Sendable {
    private static let closed = Int.max / 2

    private let position = Atomic<Int>(closed)
    private var slots: UnsafeMutablePointer<MachMessage>?
    /// How many messages are leased.
    private var claimedCount = 0
    // Unchecked: guarded as said above. A check costs as much as the work.
    @exclusivity(unchecked) private var row: MessageBuffer

    init(_ row: consuming MessageBuffer) {
        unsafe slots = nil
        unsafe self.row = row
    }

    deinit { _ = end() }

    private var takenCount: Int {
        let next = position.load(ordering: .acquiring)
        return next >= Self.closed ? 0 : min(next, claimedCount)
    }

    /// How many messages, leased or not, are not dequeued yet.
    var count: Int { unsafe row.count - takenCount }

    /// How many of the leased ones are not dequeued yet.
    var remaining: Int { max(0, claimedCount - position.load(ordering: .acquiring)) }

    /// Leases the oldest messages to the thread of a handler.
    func open(atMost limit: Int) {
        claimedCount = unsafe min(limit, row.count)
        unsafe slots = row.firstSlot
        position.store(0, ordering: .releasing)
    }

    /// Dequeues the next message; only the thread that has the lease may.
    ///
    /// - Returns: nil when there is none, or the queue has revoked the rest.
    func next() -> MachMessage? {
        let index = position.add(1, ordering: .acquiringAndReleasing).oldValue
        guard index < claimedCount, let slots = unsafe slots else { return nil }
        // Not further ahead: batches are of a few messages.
        if index + 2 < claimedCount { unsafe Self.fetchAhead(slots + (index + 2)) }
        unsafe slots[index].noteTaken()
        return unsafe (slots + index).move()
    }

    private static let partsOffset = MemoryLayout<MachMessage>.offset(of: \.parts) ?? 0

    /// Prefetches the bytes of a message, which another thread has written and this one will read. The message may be
    /// revoked meanwhile: its memory, which stays, is read as a word, and a prefetch of whatever that points to is
    /// harmless.
    private static func fetchAhead(_ slot: UnsafePointer<MachMessage>) {
        let word = unsafe UnsafeRawPointer(slot).load(fromByteOffset: partsOffset, as: UInt.self)
        unsafe sysPrefetch(UnsafeRawPointer(bitPattern: word))
    }

    /// Ends the lease; called by the thread that has it.
    ///
    /// - Returns: how many messages were dequeued.
    func end() -> Int {
        let count = takenCount
        position.store(Self.closed, ordering: .releasing)
        unsafe row.dropFirst(count)
        return count
    }

    /// Revokes the lease. The thread that has it may still be moving a message out: so the batch is not opened again.
    ///
    /// - Returns: how many of the leased messages were not dequeued.
    func close() -> Int {
        let count = min(position.exchange(Self.closed, ordering: .acquiringAndReleasing), claimedCount)
        unsafe row.dropFirst(count)
        return claimedCount - count
    }

    // MARK: While it is closed

    /// Changes the messages.
    func withRow<Result: ~Copyable>(_ body: (inout MessageBuffer) -> Result) -> Result { unsafe body(&row) }
}
