// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import RunLoopCore

/// How a task waits for a descriptor: the I/O thread watches it meanwhile, and no thread waits for the task alone.
package enum DescriptorWait {
    /// Suspends the task until the descriptor is readable, the deadline has come, or the task is cancelled. It may
    /// return earlier; the caller checks.
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
        let watch = OneShotWatch(descriptor) { task.wake() }
        defer { watch.end() }
        try loop.addOrThrow(watch.source, to: .default)
        let alarm = RunLoopTimer(name: "port task limit", fireDate: deadline) { _ in task.wake() }
        defer { alarm.invalidate() }
        if deadline != .distantFuture { loop.add(alarm) }
        try? await task.wait()  // until it was woken, or cancelled
    }
}

/// Watches a descriptor until it is readable for the first time: it stays readable until the task has read it.
private struct OneShotWatch: Sendable {
    let source: RunLoopSource
    /// The routine of the source ends it through this reference.
    private let reference = ReleasableReference<RunLoopSource>()

    init(_ descriptor: CInt, _ whenReadable: @escaping @Sendable () -> Void) {
        source = RunLoopSource(name: "port task wait", descriptor: descriptor) { [reference] in
            reference.release()?.invalidate()
            whenReadable()
        }
        reference.set(source)
    }

    func end() {
        reference.release()?.invalidate()
    }
}
