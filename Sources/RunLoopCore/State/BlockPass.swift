// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// One pass over a loop's blocks and jobs: it performs those that were posted before it began.
struct BlockPass: Sendable {
    /// The number of the last one to perform; nil before the first.
    var limit: UInt64?
    /// The last item that was dequeued is a job.
    var isRunningJob = false
}

extension RunLoopState {
    /// Dequeues the next block or job of a pass.
    ///
    /// - Parameters:
    ///   - phase: the pass.
    ///   - mode: the mode of its run.
    /// - Returns: what to perform; nil when the pass is over.
    mutating func takeBlock(of phase: inout BlockPass, for mode: Int) -> BlockQueue.Item? {
        if phase.isRunningJob { isRunningJob = false }
        let limit = phase.limit ?? blocks.lastStamp
        let item = takeBlock(for: mode, upTo: limit)
        phase.limit = limit
        phase.isRunningJob = if case .job = item { true } else { false }
        if phase.isRunningJob { isRunningJob = true }
        return item
    }
}
