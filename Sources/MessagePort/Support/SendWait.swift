// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import RunLoopCore
import Synchronization

// A task that waits for room to send. It blocks no thread: the code that makes room wakes it, and it checks again, so
// an early or superfluous wake-up does no harm. Its time limit and its cancellation end the wait; whether the message
// was sent meanwhile is decided by the queue that has it, never here.
//
//   checking ──wait()──▶ suspended ──wake()──▶ checking
//      └────────end()─────────┴──▶ ended: wait() throws
//
// A wake-up while it checks makes the next wait() return at once.
package final class SendWait: Sendable {
    private struct State: Sendable {
        var isWoken = false
        var failure: PortError?
        var continuation: CheckedContinuation<Void, Never>?
        /// Ends the wait at the time limit; started by the first wait.
        var alarm: ItemID?
    }

    private let state = Mutex(State())
    private let deadline: MonotonicInstant  // immutable

    /// A wait that ends at the deadline.
    init(until deadline: MonotonicInstant) {
        self.deadline = deadline
    }

    /// Whether it can wait at all.
    var mayWait: Bool { deadline > .now }

    /// Something has changed: the task checks again.
    func wake() {
        let continuation = state.withLock { state in
            state.isWoken = true
            return state.continuation.take()
        }
        continuation?.resume()
    }

    /// Suspends the task until it is woken.
    ///
    /// - Throws: `sendTimedOut` or `cancelled` when the wait is over, now or before.
    nonisolated(nonsending) func wait() async throws(PortError) {
        startAlarm()
        await withTaskCancellationHandler {
            await suspend()
        } onCancel: {
            end(PortError(.cancelled, delivery: .notSent))
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Ends the wait's time limit.
    func finish() {
        AlarmClock.shared.stop(state.withLock { $0.alarm.take() })
    }

    private nonisolated(nonsending) func suspend() async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait = !state.isWoken && state.failure == nil
                state.isWoken = false
                if mustWait { state.continuation = continuation }
                return mustWait
            }
            if !mustWait { continuation.resume() }
        }
        state.withLock { $0.isWoken = false }
    }

    private func end(_ failure: PortError) {
        let continuation = state.withLock { state in
            if state.failure == nil { state.failure = failure }
            return state.continuation.take()
        }
        continuation?.resume()
    }

    private func startAlarm() {
        if state.withLock({ $0.alarm != nil }) { return }
        if !mayWait { return end(PortError(.sendTimedOut)) }
        let alarm = AlarmClock.shared.set(for: deadline) { self.end(PortError(.sendTimedOut)) }
        state.withLock { $0.alarm = alarm }
    }
}

/// A thread or a task in a queue: woken when it is next.
enum Waiter: Sendable {
    case thread(ThreadEvent)
    case task(SendWait)

    func wake() {
        switch self {
        case .thread(let event): event.set()
        case .task(let wait): wait.wake()
        }
    }
}

/// A task that waits for a message. It is woken once, and then checks for one. The wake-up hands over nothing, so
/// nothing is lost when the task was cancelled meanwhile.
package final class TaskWaiter: Sendable {
    private struct State: Sendable {
        var isWoken = false
        var continuation: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Wakes it, now or when it comes to wait.
    package func wake() {
        let continuation = state.withLock { state in
            state.isWoken = true
            return state.continuation.take()
        }
        continuation?.resume()
    }

    /// Suspends the task until it is woken.
    package func wait() async {
        await withCheckedContinuation { continuation in
            let isWoken = state.withLock { state in
                if !state.isWoken { state.continuation = continuation }
                return state.isWoken
            }
            if isWoken { continuation.resume() }
        }
    }
}

/// Until when a sender waits for room. Most senders within a process find room at once, and then never read the clock.
package enum SendDeadline: Sendable {
    /// This long from when the deadline is first read; a sender that waits reads it once.
    case after(Duration)
    case instant(MonotonicInstant)

    /// It sends when there is room, and does not wait.
    static let never = SendDeadline.instant(.distantPast)

    /// Whether it waits at all.
    var mayWait: Bool {
        switch self {
        case .after(let limit): limit > .zero
        case .instant(let instant): instant > .distantPast
        }
    }

    /// The deadline, which stays the same from now on.
    mutating func fix() -> MonotonicInstant {
        let instant = instant
        self = .instant(instant)
        return instant
    }

    /// The deadline.
    var instant: MonotonicInstant {
        switch self {
        case .after(let limit): .after(limit)
        case .instant(let instant): instant
        }
    }
}
