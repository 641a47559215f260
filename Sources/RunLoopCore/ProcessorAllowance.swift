// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Whether two or more processors may run this program, looked up again when the answer is old.
final class ProcessorAllowance: Sendable {
    private static let validity = Duration.seconds(5)

    private let isPlural = Atomic<Bool>(false)  // loop thread
    private let end = Atomic<Int64>(.min)  // loop thread: until when it holds

    /// Whether a thread that spins leaves a processor to the thread that it waits for. Loop thread only: what counts is
    /// the calling thread's affinity mask.
    func allowsSpinning(at now: MonotonicInstant) -> Bool {
        if now.nanoseconds < end.load(ordering: .relaxed) { return isPlural.load(ordering: .relaxed) }
        let answer = sysAllowedProcessorCount() >= 2 && (ProcessorQuota.read() ?? 2) >= 2
        isPlural.store(answer, ordering: .relaxed)
        end.store(now.advanced(by: Self.validity).nanoseconds, ordering: .relaxed)
        return answer
    }
}
