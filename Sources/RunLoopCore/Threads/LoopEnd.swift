// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The end of a resident thread's loop, for which threads and tasks wait.
final class LoopEnd: Sendable {
    private let event = ThreadEvent()  // guards itself
    /// The tasks that wait; nil when the loop has ended.
    private let waiters = Mutex<[ItemID: CheckedContinuation<Void, Never>]?>([:])

    /// The loop has ended: wakes all that wait.
    func set() {
        event.set()
        for waiter in (waiters.withLock { $0.take() } ?? [:]).values { waiter.resume() }
    }

    /// Blocks until the loop has ended, or the deadline has passed.
    ///
    /// - Returns: whether the loop has ended.
    func wait(until deadline: MonotonicInstant) -> Bool { event.wait(until: deadline) }

    /// The same in a task, which blocks no thread while it waits. The task's cancellation ends the wait, too.
    nonisolated(nonsending) func wait(until deadline: MonotonicInstant) async -> Bool {
        if deadline <= .now { return hasCome }
        let id = ItemID()
        let alarm = AlarmClock.shared.set(for: deadline) { self.endWait(id) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = waiters.withLock { waiters in
                    // What ends the wait comes before this, and is seen here, or after it, and finds the waiter.
                    if waiters == nil || Task.isCancelled || deadline <= .now { return false }
                    waiters?[id] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            endWait(id)
        }
        AlarmClock.shared.stop(alarm)
        return hasCome
    }

    private var hasCome: Bool { waiters.withLock { $0 == nil } }

    private func endWait(_ id: ItemID) {
        waiters.withLock { $0?.removeValue(forKey: id) }?.resume()
    }
}
