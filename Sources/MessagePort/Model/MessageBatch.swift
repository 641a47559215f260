// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// @unchecked: whoever has the queue's lock has all of it while it is closed. While it is open, each slot of a claimed
// message belongs to whoever has drawn its number from `position`, the thread that takes messages, or the one that has
// closed the claim and has all slots from there on, where the former only reads (`fetchAhead`); all else is written
// under the lock while it is closed.
/// The oldest messages of a queue, which the thread of a handler takes one after the other without the queue's lock.
@safe final class MessageBatch: @unchecked Sendable {
    private static let closed = Int.max / 2

    private let position = Atomic<Int>(closed)
    private var slots: UnsafeMutablePointer<MachMessage>?
    /// How many messages were claimed.
    private var claimedCount = 0
    // Unchecked: guarded as said above. To check costs as much as what is done.
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

    /// How many messages there are, claimed or not, that are not taken.
    var count: Int { unsafe row.count - takenCount }

    /// How many of the claimed ones are not taken.
    var remaining: Int { max(0, claimedCount - position.load(ordering: .acquiring)) }

    /// Lets the thread of a handler take the oldest messages.
    func open(atMost limit: Int) {
        claimedCount = unsafe min(limit, row.count)
        unsafe slots = row.firstSlot
        position.store(0, ordering: .releasing)
    }

    /// Takes the next message; only the thread that has the claim may.
    ///
    /// - Returns: nil when there is none, or the queue has taken the rest back.
    func next() -> MachMessage? {
        let index = position.add(1, ordering: .acquiringAndReleasing).oldValue
        guard index < claimedCount, let slots = unsafe slots else { return nil }
        // Not further ahead: claims are of a few messages.
        if index + 2 < claimedCount { unsafe Self.fetchAhead(slots + (index + 2)) }
        unsafe slots[index].noteTaken()
        return unsafe (slots + index).move()
    }

    private static let partsOffset = MemoryLayout<MachMessage>.offset(of: \.parts) ?? 0

    /// Has the bytes of a message fetched, which another thread has written and this one will read. The message may be
    /// taken back meanwhile: its memory, which stays, is read as a word, and whatever that is, to fetch what it points to is
    /// never wrong.
    private static func fetchAhead(_ slot: UnsafePointer<MachMessage>) {
        let word = unsafe UnsafeRawPointer(slot).load(fromByteOffset: partsOffset, as: UInt.self)
        unsafe sysPrefetch(UnsafeRawPointer(bitPattern: word))
    }

    /// The thread that has the claim takes no more.
    ///
    /// - Returns: how many messages were taken.
    func end() -> Int {
        let count = takenCount
        position.store(Self.closed, ordering: .releasing)
        unsafe row.dropFirst(count)
        return count
    }

    /// Nothing more is taken. Who has the claim may still be moving a message out of it: so it is not opened again.
    ///
    /// - Returns: how many of the claimed messages were not taken.
    func close() -> Int {
        let count = min(position.exchange(Self.closed, ordering: .acquiringAndReleasing), claimedCount)
        unsafe row.dropFirst(count)
        return claimedCount - count
    }

    // MARK: While it is closed

    /// Changes the messages.
    func withRow<Result: ~Copyable>(_ body: (inout MessageBuffer) -> Result) -> Result { unsafe body(&row) }
}
