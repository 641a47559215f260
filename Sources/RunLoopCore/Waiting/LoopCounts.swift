// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// How often a loop has slept and spun since it was made.
public struct WaitCounts: Hashable, Sendable {
    /// Waits in the kernel.
    public var sleeps = 0
    /// Spins that an event, a wake-up, or the run's limit ended: no sleep was needed.
    public var spinsThatPaid = 0
    /// Spins after which the loop slept nevertheless, or during which another thread kept the processor.
    public var spinsThatDidNot = 0
}

/// What a loop has done so far: written by its thread only, readable anywhere.
final class LoopCounts: Sendable {
    private let passCount = Atomic<Int>(0)
    private let pollCount = Atomic<Int>(0)
    private let sleepCount = Atomic<Int>(0)
    private let paidSpinCount = Atomic<Int>(0)
    private let failedSpinCount = Atomic<Int>(0)

    var passes: Int { passCount.load(ordering: .relaxed) }

    /// Waits in the kernel, including polls with zero timeout.
    var kernelWaits: Int { pollCount.load(ordering: .relaxed) + sleepCount.load(ordering: .relaxed) }

    var waits: WaitCounts {
        WaitCounts(
            sleeps: sleepCount.load(ordering: .relaxed), spinsThatPaid: paidSpinCount.load(ordering: .relaxed),
            spinsThatDidNot: failedSpinCount.load(ordering: .relaxed))
    }

    func didBeginPass() { Self.raise(passCount) }

    func didPoll(sleeping: Bool) {
        if sleeping { Self.raise(sleepCount) } else { Self.raise(pollCount) }
    }

    func didSpin(paid: Bool) {
        if paid { Self.raise(paidSpinCount) } else { Self.raise(failedSpinCount) }
    }

    private static func raise(_ count: borrowing Atomic<Int>) {
        count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
}
