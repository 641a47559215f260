// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The numbers of the entries that wait for one mode, in the order of posting.
///
/// An entry that was removed elsewhere leaves its number as a gap. A gap does not count, and is dropped when it comes
/// first. When there are more gaps than entries, and more than a few, all gaps are dropped: each removal costs
/// amortized O(1).
struct BlockFIFO: Sendable {
    private static let gapLimit = 32

    private var stamps: [UInt64] = []
    /// The index of the first number that was not dropped.
    private var head = 0
    /// How many of them still wait.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// How many numbers are stored, gaps included.
    var length: Int { stamps.count }

    /// Appends a number.
    mutating func append(_ stamp: UInt64) {
        stamps.append(stamp)
        count += 1
    }

    /// The first number that still waits.
    ///
    /// - Parameters:
    ///   - items: the entries that wait.
    ///   - steps: incremented for each number that is examined.
    /// - Returns: the number.
    mutating func first(in items: [UInt64: BlockQueue.Item], _ steps: inout Int) -> UInt64? {
        if isEmpty { return nil }
        while head < stamps.count {
            steps += 1
            if items[stamps[head]] != nil { return stamps[head] }
            head += 1
        }
        return nil
    }

    /// Records that a number of this queue no longer waits.
    ///
    /// - Parameters:
    ///   - stamp: the number.
    ///   - items: the entries that still wait.
    ///   - steps: incremented for each number that is examined.
    mutating func didRemove(_ stamp: UInt64, in items: [UInt64: BlockQueue.Item], _ steps: inout Int) {
        steps += 1
        count -= 1
        if head < stamps.count, stamps[head] == stamp { head += 1 }
        guard isEmpty || stamps.count > 2 * count + Self.gapLimit else { return }
        if isEmpty {
            stamps.removeAll(keepingCapacity: stamps.capacity <= 2 * Self.gapLimit)
        } else {
            steps += stamps.count - head
            stamps = stamps[head...].filter { items[$0] != nil }
        }
        head = 0
    }
}
