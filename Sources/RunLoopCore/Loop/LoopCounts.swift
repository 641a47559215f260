// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What a loop has done so far: written by its thread only, readable anywhere.
final class LoopCounts: Sendable {
    private let turnCount = Atomic<Int>(0)
    private let lookCount = Atomic<Int>(0)
    private let sleepCount = Atomic<Int>(0)
    private let paidSpinCount = Atomic<Int>(0)
    private let failedSpinCount = Atomic<Int>(0)

    var turns: Int { turnCount.load(ordering: .relaxed) }

    /// Waits in the kernel, including polls with zero timeout.
    var kernelWaits: Int { lookCount.load(ordering: .relaxed) + sleepCount.load(ordering: .relaxed) }

    var waits: WaitCounts {
        WaitCounts(
            sleeps: sleepCount.load(ordering: .relaxed), spinsThatPaid: paidSpinCount.load(ordering: .relaxed),
            spinsThatDidNot: failedSpinCount.load(ordering: .relaxed))
    }

    func didTurn() { Self.raise(turnCount) }

    func didLook(sleeping: Bool) {
        if sleeping { Self.raise(sleepCount) } else { Self.raise(lookCount) }
    }

    func didSpin(paid: Bool) {
        if paid { Self.raise(paidSpinCount) } else { Self.raise(failedSpinCount) }
    }

    private static func raise(_ count: borrowing Atomic<Int>) {
        count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
}
