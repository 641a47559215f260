// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A time at which a loop performs blocks and jobs: those that were posted before it began.
struct BlockPass: Sendable {
    /// The number of the last one that is performed; nil before the first.
    var limit: UInt64?
    /// What was taken last is a job.
    var isRunningJob = false
}

extension RunLoopState {
    /// Takes out the next block or job of a phase.
    ///
    /// - Parameters:
    ///   - phase: the phase.
    ///   - mode: the mode of its run.
    /// - Returns: what is to be performed; nil when the phase is over.
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
