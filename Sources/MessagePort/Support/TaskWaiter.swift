// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import RunLoopCore
import Synchronization

// A task that waits: for room to send, for the send lock, for a message, for a descriptor. It blocks no thread: the code
// that changes what it waits for wakes it, and it checks again, so an early or superfluous wake-up does no harm. The
// wake-up hands over nothing, so nothing is lost when the wait ends by its time limit or its cancellation: whether a
// message was sent meanwhile is decided by the queue that has it, never here.
//
//   checking ──wait()──▶ suspended ──wake()──▶ woken ──▶ checking
//   checking ──wake()──▶ woken: the next wait() returns at once
//   any      ──end()───▶ ended: wait() throws
package final class TaskWaiter: Sendable {
    private enum Stage: Sendable {
        case checking
        case suspended(CheckedContinuation<Void, Never>)
        case woken
        /// Why the wait is over.
        case ended(PortError.Code)
    }

    private struct State: Sendable {
        var stage = Stage.checking
        /// Ends the wait at the time limit; started by the first wait.
        var alarm: ItemID?
    }

    private let state = Mutex(State())
    let deadline: MonotonicInstant  // immutable

    /// A wait that ends at the deadline, if there is one.
    package init(until deadline: MonotonicInstant = .distantFuture) {
        self.deadline = deadline
    }

    /// Whether it can wait at all.
    var mayWait: Bool { deadline > .now }

    /// Wakes it, now or when it comes to wait: the task checks again.
    package func wake() { change(to: .woken) }

    /// Suspends the task until it is woken.
    ///
    /// - Throws: `sendTimedOut` or `cancelled` when the wait is over, now or before.
    nonisolated(nonsending) package func wait() async throws(PortError) {
        startAlarm()
        await withTaskCancellationHandler {
            await suspend()
        } onCancel: {
            end(.cancelled)
        }
        let reason = state.withLock { state -> PortError.Code? in
            if case .ended(let reason) = state.stage { return reason }
            state.stage = .checking
            return nil
        }
        if let reason { throw PortError(reason, delivery: reason == .cancelled ? .notSent : nil) }
    }

    /// Ends the wait's time limit.
    package func finish() {
        AlarmClock.shared.stop(state.withLock { $0.alarm.take() })
    }

    private nonisolated(nonsending) func suspend() async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard case .checking = state.stage else { return false }
                state.stage = .suspended(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    private func end(_ code: PortError.Code) { change(to: .ended(code)) }

    /// Ends a suspension. A wait that has ended stays so, for the same reason.
    private func change(to stage: Stage) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            let old = state.stage
            if case .ended = old { return nil }
            state.stage = stage
            if case .suspended(let continuation) = old { return continuation }
            return nil
        }
        if let continuation { Callouts.run { continuation.resume() } }
    }

    private func startAlarm() {
        if deadline == .distantFuture || state.withLock({ $0.alarm != nil }) { return }
        if !mayWait { return end(.sendTimedOut) }
        let alarm = AlarmClock.shared.set(for: deadline) { self.end(.sendTimedOut) }
        state.withLock { $0.alarm = alarm }
    }
}

/// A thread or a task in a queue: woken when it is next.
enum Waiter: Sendable {
    case thread(ThreadEvent)
    case task(TaskWaiter)

    func wake() {
        switch self {
        case .thread(let event): event.set()
        case .task(let wait): wait.wake()
        }
    }
}
