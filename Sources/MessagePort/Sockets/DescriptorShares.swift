// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How the descriptors that this process may have, its soft limit RLIMIT_NOFILE, are shared, so that neither a peer nor
// a kind of use takes them all.

import PortSystem
import Synchronization

/// The parts of the process's descriptors, each for a kind of use.
struct DescriptorShares {
    /// How many the process may have. Asked for anew each time: a program may change it while it runs.
    var limit = sysDescriptorLimit()

    /// Of the channels that wake the readers of rings, for all connections of the process together: a quarter.
    var wakeChannels: Int { limit / 4 }
}

/// Counts the descriptors of one kind in this process, and says when there are enough.
package final class DescriptorBudget: Sendable {
    /// For the channels that wake the readers of rings.
    package static let wakeChannels = DescriptorBudget { DescriptorShares().wakeChannels }

    private let limit: @Sendable () -> Int  // immutable
    private let taken = Atomic<Int>(0)

    /// How many are counted now.
    package var count: Int { taken.load(ordering: .relaxed) }

    init(limit: @escaping @Sendable () -> Int) {
        self.limit = limit
    }

    /// Counts descriptors that are about to be opened, all or none. Each call that answers true needs one of `give`.
    ///
    /// - Parameter count: how many.
    /// - Returns: whether there may be so many more.
    package func take(_ count: Int) -> Bool {
        let limit = limit()
        var known = taken.load(ordering: .relaxed)
        while known + count <= limit {
            let (isTaken, now) = taken.weakCompareExchange(
                expected: known, desired: known + count, ordering: .relaxed)
            if isTaken { return true }
            known = now
        }
        return false
    }

    /// Counts descriptors no more: they are closed, or could not be opened.
    package func give(_ count: Int) {
        taken.subtract(count, ordering: .relaxed)
    }
}
