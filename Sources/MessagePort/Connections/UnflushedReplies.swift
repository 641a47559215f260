// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Counts the connections of this process that keep replies for which there was no room, and wakes who waits until there
/// is none.
final class UnflushedReplies: Sendable {
    private struct Waiting: Sendable {
        var lastNumber = 0
        var waiters: [Int: Waiter] = [:]
    }

    /// Who waits looks at the count after he is among those who are woken; who takes the last one away looks at those
    /// afterwards. All is sequentially consistent, so one of the two sees the other. Who comes meanwhile takes the waking over.
    private let count = Atomic<Int>(0)
    private let waiting = Mutex(Waiting())
    private let forkCount = sysForkCount()  // immutable

    private static let known = Mutex(UnflushedReplies())

    /// Those of this process. A forked child has none of its parent's.
    static var current: UnflushedReplies {
        known.withLock { known in
            if known.forkCount != sysForkCount() {
                // SAFETY: nothing is done with the reference: events for which the parent's threads wait are never let go.
                _ = unsafe Unmanaged.passRetained(known)
                known = UnflushedReplies()
            }
            return known
        }
    }

    /// A connection keeps replies from now on. May be called under any lock.
    func enter() {
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    /// It has sent them, or they go nowhere any more. Wakes who waits for that.
    func leave() {
        let (_, left) = count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        if left > 0 { return }
        let woken = waiting.withLock { waiting -> [Int: Waiter] in
            // Another has entered since, perhaps with a reply for which one of them waits: it wakes them when it leaves.
            if count.load(ordering: .sequentiallyConsistent) > 0 { return [:] }
            defer { waiting.waiters = [:] }
            return waiting.waiters
        }
        for waiter in woken.values { waiter.wake() }
    }

    /// Blocks until there were none, or the deadline has come.
    ///
    /// - Returns: whether there were none.
    func waitUntilSent(until deadline: MonotonicInstant) -> Bool {
        let event = ThreadEvent()
        guard let number = enqueue(.thread(event)) else { return true }
        return event.wait(until: deadline) || !remove(number)
    }

    /// The same in a task, which holds no thread meanwhile. That the task is cancelled ends the wait, too.
    nonisolated(nonsending) func waitUntilSent(waiting wait: SendWait) async -> Bool {
        guard let number = enqueue(.task(wait)) else { return true }
        do throws(PortError) {
            try await wait.wait()
            return true
        } catch {
            return !remove(number)
        }
    }

    /// - Returns: a number for `remove`; nil when there are none.
    private func enqueue(_ waiter: Waiter) -> Int? {
        let number = waiting.withLock { waiting in
            waiting.lastNumber += 1
            waiting.waiters[waiting.lastNumber] = waiter
            return waiting.lastNumber
        }
        if count.load(ordering: .sequentiallyConsistent) > 0 { return number }
        _ = remove(number)
        return nil
    }

    /// - Returns: false when it was woken before.
    private func remove(_ number: Int) -> Bool {
        waiting.withLock { $0.waiters.removeValue(forKey: number) } != nil
    }
}
