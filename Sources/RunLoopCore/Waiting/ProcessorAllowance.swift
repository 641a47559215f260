// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Whether two or more processors may run this program. The answer is cached for a while.
package final class ProcessorAllowance: Sendable {
    /// For threads that wait for another thread or process. The answer for the thread that asked last, as far as it is still
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
