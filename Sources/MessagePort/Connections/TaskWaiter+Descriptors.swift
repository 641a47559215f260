// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import RunLoopCore

extension TaskWaiter {
    /// Suspends the task until the descriptor is readable, the deadline has come, or the task is cancelled. It may
    /// return earlier; the caller checks. The I/O thread watches the descriptor meanwhile, and no thread waits for the
    /// task alone.
    ///
    /// - Parameters:
    ///   - descriptor: an open descriptor, which stays open during the call.
    ///   - deadline: when to stop waiting.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when it cannot be watched.
    nonisolated(nonsending) package static func wait(for descriptor: CInt, until deadline: MonotonicInstant)
        async throws(PortError)
    {
        let loop = try IOThread.loop()
        let task = TaskWaiter()
        // The routine ends its source when the descriptor is readable for the first time: it stays readable until the
        // task has read it.
        let reference = ReleasableReference<RunLoopSource>()
        let source = RunLoopSource(name: "port task wait", descriptor: descriptor) {
            reference.release()?.invalidate()
            task.wake()
        }
        reference.set(source)
        defer { reference.release()?.invalidate() }
        try loop.addOrThrow(source, to: .default)
        // Not the tasks' common alarm clock, which needs a free thread of Swift's pool: here is a loop that has a thread.
        let alarm = RunLoopTimer(name: "port task limit", fireDate: deadline) { _ in task.wake() }
        defer { alarm.invalidate() }
        if deadline != .distantFuture { loop.add(alarm) }
        try? await task.wait()  // until it was woken, or cancelled
    }
}
