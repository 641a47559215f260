// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

extension ProcessorAllowance {
    /// Spins until `isOver`, or the deadline, where spinning pays. A loop has its own spin, which
    /// also polls the kernel, and measures its yields, since its mode learns from them when to spin.
    ///
    /// - Parameters:
    ///   - end: the deadline; computed only where spinning pays.
    ///   - pauses: how many pauses between two checks.
    ///   - yields: whether the awaited thread may wait for this very processor, so that it is yielded from time to time.
    ///     If not, it is checked at least once, whatever the time is.
    ///   - isOver: the check.
    /// - Returns: whether it was over.
    @discardableResult
    func spin(
        until end: @autoclosure () -> MonotonicInstant, pauses: Int, yields: Bool = false, _ isOver: () -> Bool
    ) -> Bool {
        guard allowsSpinning(at: .coarse) else { return false }
        let end = end()
        var now = yields ? MonotonicInstant.now : .distantPast
        var nextYield = yields ? now.advanced(by: Tuning.timeBetweenYields) : .distantFuture
        while now < end {
            if now >= nextYield {
                sysYield()
                nextYield = .after(Tuning.timeBetweenYields)
            }
            for _ in 0..<pauses { sysPause() }
            if isOver() { return true }
            now = .now
        }
        return false
    }
}
