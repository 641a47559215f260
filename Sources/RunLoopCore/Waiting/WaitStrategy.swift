// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// How a loop waits when nothing is ready.
///
/// Sleeping and being woken takes tens of microseconds. A loop that spins notices an event within a fraction of a
/// microsecond, and keeps a processor busy meanwhile.
public enum WaitStrategy: Hashable, Sendable {
    /// Spins for up to 100 µs before it sleeps, but only while the events in the mode arrive less than 250 µs apart,
    /// and only when two or more processors may run this program: by the thread's affinity mask and by the control
    /// group's limit. A spin that did not pay makes the next one rarer. An idle program never spins. A spin yields its
    /// processor to other threads every 5 µs (`sched_yield`), the first time after 5 µs without an event, or at once
    /// when the last yield paid: the thread that it waits for may be among them. When another thread keeps the
    /// processor for long, the loop stops yielding for a while.
    case adaptive
    /// Sleeps at once.
    case blocking
    /// Always spins for the given time before it sleeps: also on a single processor, where it keeps other threads from
    /// running.
    case spinning(for: Duration)
}

extension WaitStrategy {
    /// The strategy of a new loop: `PORT_WAIT` in the environment, `adaptive`, `blocking` or `spinning`; without it,
    /// adaptive.
    static let standard: WaitStrategy =
        switch sysEnvironment("PORT_WAIT") {
        case "blocking": .blocking
        case "spinning": .spinning(for: .microseconds(100))
        default: .adaptive
        }
}

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

/// Whether two or more processors may run this program. The answer is cached for a while.
package final class ProcessorAllowance: Sendable {
    /// For threads that wait for another process. The answer for the thread that asked last, as far as it is still
    /// valid, holds for all threads.
    package static let shared = ProcessorAllowance()

    private let processors: @Sendable () -> Int  // immutable
    private let quota: @Sendable () -> Double?  // immutable
    private let isPlural = Atomic<Bool>(false)
    private let end = Atomic<Int64>(.min)  // until when it holds

    /// Has no answer yet.
    ///
    /// - Parameters:
    ///   - processors: how many processors the calling thread may run on.
    ///   - quota: how many the control group leaves to this process; nil for no limit.
    package init(
        processors: @escaping @Sendable () -> Int = sysAllowedProcessorCount,
        quota: @escaping @Sendable () -> Double? = { ProcessorQuota.read() }
    ) {
        self.processors = processors
        self.quota = quota
    }

    /// Whether a spinning thread leaves a processor to the thread that it waits for. What counts is the affinity mask
    /// of the thread that asked when the answer was last refreshed.
    package func allowsSpinning(at now: MonotonicInstant) -> Bool {
        if now.nanoseconds < end.load(ordering: .relaxed) { return isPlural.load(ordering: .relaxed) }
        let answer = processors() >= 2 && (quota() ?? 2) >= 2
        isPlural.store(answer, ordering: .relaxed)
        end.store(now.advanced(by: Tuning.allowanceValidity).nanoseconds, ordering: .relaxed)
        return answer
    }
}
