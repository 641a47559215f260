// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Counts the connections of this process that retain replies for which there was no room, and wakes the waiters when
/// there are none.
final class UnflushedReplies: Sendable {
    /// A waiter reads the count after it was added to the waiters; the thread that takes the count to zero reads the
    /// waiters afterwards. All operations are sequentially consistent, so one of the two sees the other. A connection
    /// that enters meanwhile takes over the wake-up.
    private let count = Atomic<Int>(0)
    private let waiting = Mutex((lastNumber: 0, waiters: [Int: Waiter]()))
    private let forkGuard = ForkGuard()  // immutable
    /// The count of a forked child, made when it first asks for it.
    private let next = SetOnceReference<UnflushedReplies>()

    private static let first = UnflushedReplies()

    /// The count of this process. A forked child has none of its parent's replies. It never locks the counts of its
    /// ancestors, nor releases them: a thread that does not exist in the child may hold the lock, or wait there.
    static var current: UnflushedReplies {
        var known = first
        while known.forkGuard.isInherited {
            if known.next.object == nil { known.next.set(UnflushedReplies()) }  // of several threads one sets it
            guard let next = known.next.object else { break }
            known = next
        }
        return known
    }

    /// A connection begins to retain replies. May be called under any lock.
    func enter() { count.wrappingAdd(1, ordering: .sequentiallyConsistent) }

    /// A connection has sent its replies, or dropped them. Wakes the waiters after the last one.
    func leave() {
        let (_, left) = count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        if left > 0 { return }
        let woken = waiting.withLock { waiting -> [Int: Waiter] in
            // Another has entered since, perhaps with a reply for which a waiter waits: it wakes them when it leaves.
            if count.load(ordering: .sequentiallyConsistent) > 0 { return [:] }
            defer { waiting.waiters = [:] }
            return waiting.waiters
        }
        for waiter in woken.values { waiter.wake() }
    }

    /// Blocks until there are none, or until the deadline.
    ///
    /// - Returns: whether there were none.
    func waitUntilSent(until deadline: MonotonicInstant) -> Bool {
        let event = ThreadEvent()
        guard let number = enqueue(.thread(event)) else { return true }
        return event.wait(until: deadline) || !remove(number)
    }

    /// The same in a task, which blocks no thread meanwhile. The task's cancellation ends the wait, too.
    nonisolated(nonsending) func waitUntilSent(waiting wait: TaskWaiter) async -> Bool {
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
    private func remove(_ number: Int) -> Bool { waiting.withLock { $0.waiters.removeValue(forKey: number) } != nil }
}
