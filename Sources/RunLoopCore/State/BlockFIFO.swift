// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The numbers of what waits for one mode, in the order of posting.
///
/// What is taken out elsewhere leaves its number as a gap. A gap does not count, is dropped when it comes first, and
/// when there are more gaps than entries, and more than a few, all are dropped: each removal costs O(1) over time.
struct BlockFIFO: Sendable {
    private static let gapLimit = 32

    private var stamps: [UInt64] = []
    /// Where the first number is that was not dropped.
    private var head = 0
    /// How many of them still wait.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// How many numbers are kept, gaps included.
    var length: Int { stamps.count }

    /// Puts a number behind all others.
    mutating func append(_ stamp: UInt64) {
        stamps.append(stamp)
        count += 1
    }

    /// The first number that still waits.
    ///
    /// - Parameters:
    ///   - items: what waits.
    ///   - steps: grows by the looks at numbers.
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

    /// Says that a number of this line waits no more.
    ///
    /// - Parameters:
    ///   - stamp: the number.
    ///   - items: what still waits.
    ///   - steps: grows by the looks at numbers.
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
