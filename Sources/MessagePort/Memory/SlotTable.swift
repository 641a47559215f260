// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which memory of a pool is free. A segment is memory that is made, mapped and given back as a whole. It is divided into
// slots of one size; a loan is one slot. Sizes of slots grow by quarters of a power of two, so a loan leaves at most a
// fifth of its slot unused; small slots share a segment.

import PortSystem

/// Decides, does nothing else.
struct SlotTable: Sendable {
    /// A slot of a segment.
    struct Slot: Hashable, Sendable {
        let segment: UInt64
        let index: Int
    }

    private struct Segment {
        let number: UInt64
        let slotSize: Int
        let slotCount: Int
        /// The free slots; the one that was used last is used first, because it is in the processor's caches.
        var free: [Int]
        /// Since when all slots are free; nil while one is not.
        var idleSince: MonotonicInstant?

        var size: Int { slotSize * slotCount }
    }

    /// The most bytes of all segments.
    let capacity: Int
    /// The bytes of all segments, and of those that are being made.
    private(set) var reservedByteCount = 0
    /// The bytes of all slots that are in use.
    private(set) var usedByteCount = 0
    /// Few: those of one size double. The one that was made last is last.
    private var segments: [Segment] = []

    init(capacity: Int) { self.capacity = capacity }

    /// Whether a segment is wholly free.
    var hasIdleSegment: Bool { segments.contains { $0.idleSince != nil } }

    /// The size of the slots for a loan of that many bytes.
    static func slotSize(for byteCount: Int) -> Int {
        let size = max(byteCount, Tuning.smallestSlot)
        // The largest power of two that is less.
        let power = 1 << (Int.bitWidth - 1 - (size - 1).leadingZeroBitCount)
        let step = max(power / 4, Tuning.smallestSlot)
        return (size + step - 1) / step * step
    }

    /// How many slots of a size the next segment has: as many as there are, so that many slots take few segments.
    func slotCount(ofSize slotSize: Int) -> Int {
        let present = segments.reduce(0) { $1.slotSize == slotSize ? $0 + $1.slotCount : $0 }
        let size = min(
            max(present * slotSize, Tuning.smallestSegment), MemoryPool.largestLoan, capacity - usedByteCount)
        return max(1, size / slotSize)
    }

    /// Uses a free slot of a size.
    ///
    /// - Returns: nil when there is none.
    mutating func takeSlot(ofSize slotSize: Int) -> Slot? {
        for position in segments.indices where segments[position].slotSize == slotSize {
            guard let index = segments[position].free.popLast() else { continue }
            segments[position].idleSince = nil
            usedByteCount += slotSize
            return Slot(segment: segments[position].number, index: index)
        }
        return nil
    }

    /// A slot is free again.
    mutating func giveBack(_ slot: Slot, at instant: @autoclosure () -> MonotonicInstant) {
        guard let position = segments.firstIndex(where: { $0.number == slot.segment }) else { return }
        segments[position].free.append(slot.index)
        usedByteCount -= segments[position].slotSize
        if segments[position].free.count == segments[position].slotCount { segments[position].idleSince = instant() }
    }

    /// Reserves room for a segment that is about to be made. Where that is too little, segments that are wholly free end.
    ///
    /// - Returns: the segments that end; nil, with no change, when there is no room.
    mutating func reserve(_ byteCount: Int) -> [UInt64]? {
        var idle = segments.filter { $0.idleSince != nil }
        let idleByteCount = idle.reduce(0) { $0 + $1.size }
        guard byteCount <= capacity, reservedByteCount - idleByteCount <= capacity - byteCount else { return nil }
        // The one that was used longest ago first.
        idle.sort { ($0.idleSince ?? .distantPast, $0.number) < ($1.idleSince ?? .distantPast, $1.number) }
        var ended: [UInt64] = []
        for segment in idle {
            if reservedByteCount <= capacity - byteCount { break }
            remove(segment.number)
            ended.append(segment.number)
        }
        reservedByteCount += byteCount
        return ended
    }

    /// The segment for which room was reserved cannot be made.
    mutating func unreserve(_ byteCount: Int) { reservedByteCount -= byteCount }

    /// The segment for which room was reserved is made; its first slot is used.
    mutating func add(_ number: UInt64, slotSize: Int, count: Int) -> Slot {
        segments.append(
            Segment(number: number, slotSize: slotSize, slotCount: count, free: Array((1..<count).reversed())))
        usedByteCount += slotSize
        return Slot(segment: number, index: 0)
    }

    /// Removes the segments that have been wholly free since a moment, or longer.
    ///
    /// - Returns: their numbers.
    mutating func removeIdle(since instant: MonotonicInstant) -> [UInt64] {
        let idle = segments.filter { $0.idleSince.map { $0 <= instant } ?? false }.map(\.number)
        for number in idle { remove(number) }
        return idle
    }

    private mutating func remove(_ number: UInt64) {
        guard let position = segments.firstIndex(where: { $0.number == number }) else { return }
        reservedByteCount -= segments.remove(at: position).size
    }
}
