// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The send lock of a connection: one sender at a time, so that the pieces of large messages never mix. It is FIFO, and
/// is acquired with a deadline, because the holder may itself be waiting for room. The holder may be a task.
/// It is a part of its connection; what only waiters need is made when there is one.
struct SendLock: ~Copyable, Sendable {
    /// The part that is read without the mutex. It changes from `free` to `locked` and back without the mutex, and
    /// otherwise under it.
    private enum LockState {
        static let free: UInt8 = 0
        static let locked: UInt8 = 1
        /// It is locked, and the thread that unlocks it reads the rest of the state.
        static let contended: UInt8 = 2
    }

    private struct State {
        /// The holder waits for room, or is a task that does not run yet.
        var isHolderBlocked = false
        var waiting: [Entry] = []

        /// The waiters that do not wait for a holder that is blocked.
        var nonblocking: [Entry] { waiting.filter(\.isNonblocking) }
    }

    /// What only a lock has for which a sender has waited, or whose holder has.
    private final class Contention: Sendable {
        let state = Mutex(State())
    }

    private final class Entry: Sendable {
        let waiter: Waiter  // immutable
        /// Whether it does not wait for a holder that waits for room.
        let isNonblocking: Bool  // immutable

        init(_ waiter: Waiter, isNonblocking: Bool = false) {
            self.waiter = waiter
            self.isNonblocking = isNonblocking
        }
    }

    private let lockState = Atomic<UInt8>(LockState.free)
    private let contention = SetOnceReference<Contention>()

    var isLocked: Bool { lockState.load(ordering: .sequentiallyConsistent) != LockState.free }

    /// Whether another sender may be waiting for it.
    var isContended: Bool { lockState.load(ordering: .relaxed) == LockState.contended }

    var waitingCount: Int { contention.object?.state.withLock { $0.waiting.count } ?? 0 }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        contention.object(orSet: Contention()).state.withLock { body(&$0) }
    }

    /// Locks; waits until the deadline.
    ///
    /// - Returns: false when the deadline came first.
    func lock(until deadline: MonotonicInstant) -> Bool { lock { event in event.wait(until: deadline) } }

    /// Locks; `wait` waits for the event, which is set when the lock is handed over.
    ///
    /// - Returns: false when it has returned before that.
    func lock(_ wait: (ThreadEvent) -> Void) -> Bool {
        guard let entry = lockOrEnqueue(.thread(ThreadEvent())), case .thread(let event) = entry.waiter else {
            return true
        }
        wait(event)
        return !leave(entry)
    }

    /// Locks if it is free.
    ///
    /// - Returns: whether it was.
    func tryLock() -> Bool {
        lockState.compareExchange(
            expected: LockState.free, desired: LockState.locked, ordering: .sequentiallyConsistent
        ).exchanged
    }

    /// Locks if free; otherwise the holder will wake a waiter when it unlocks. Called under the lock of `state`.
    private func tryLockOrContend() -> Bool {
        while !tryLock() {
            let (exchanged, found) = lockState.compareExchange(
                expected: LockState.locked, desired: LockState.contended, ordering: .sequentiallyConsistent)
            if exchanged || found == LockState.contended { return false }
        }
        return true
    }

    /// Locks for a sender that does not wait for room. It waits for senders that are sending, which soon ends, but not
    /// for a holder that waits for room, and not for a task that holds the lock and has no thread yet: the thread it
    /// needs may be this one.
    ///
    /// - Returns: false when there is no room, or that is not known yet.
    func lockUnlessHolderBlocks() -> Bool {
        let event = ThreadEvent()
        let entry = Entry(.thread(event), isNonblocking: true)
        let mustWait = withState { state -> Bool? in
            if state.isHolderBlocked { return nil }
            if tryLockOrContend() { return false }
            state.waiting.append(entry)
            return true
        }
        guard let mustWait else { return false }
        if !mustWait { return true }
        event.wait(until: .distantFuture)
        return !leave(entry)
    }

    /// The holder is about to wait for room: wakes the senders that do not wait for that.
    func holderWillBlock() {
        let nonblocking = withState { state in
            state.isHolderBlocked = true
            lockState.store(LockState.contended, ordering: .sequentiallyConsistent)
            return state.nonblocking
        }
        for entry in nonblocking { entry.waiter.wake() }
    }

    /// The holder continues: it no longer waits for room.
    func holderDidContinue() {
        contention.object?.state.withLock { $0.isHolderBlocked = false }
    }

    /// Locks in a task, which blocks no thread while it waits.
    ///
    /// - Throws: why the wait ended; then the task does not hold the lock.
    nonisolated(nonsending) func lock(waiting wait: TaskWaiter) async throws(PortError) {
        guard let entry = lockOrEnqueue(.task(wait)) else { return }
        while isWaiting(entry) {
            do throws(PortError) {
                try await wait.wait()
            } catch {
                // Handed over at the last moment: the next step that has to wait finds that the wait has ended.
                if leave(entry) { throw error }
            }
        }
        holderDidContinue()
    }

    /// Locks if it is free.
    ///
    /// - Returns: an entry in the queue when it is not.
    private func lockOrEnqueue(_ waiter: @autoclosure () -> Waiter) -> Entry? {
        if tryLock() { return nil }
        return withState { state in
            if tryLockOrContend() { return nil }
            let entry = Entry(waiter())
            state.waiting.append(entry)
            return entry
        }
    }

    private func isWaiting(_ entry: Entry) -> Bool {
        withState { $0.waiting.contains { $0 === entry } }
    }

    /// - Returns: false when the lock was handed over before.
    private func leave(_ entry: Entry) -> Bool {
        withState { state in
            guard let index = state.waiting.firstIndex(where: { $0 === entry }) else { return false }
            state.waiting.remove(at: index)
            return true
        }
    }

    /// Unlocks: hands the lock over to the next waiter. A task counts as blocked until it runs: if all threads that
    /// could run it waited for it here, it never would.
    func unlock() {
        let isUncontended = lockState.compareExchange(
            expected: LockState.locked, desired: LockState.free, ordering: .sequentiallyConsistent
        ).exchanged
        if !isUncontended { unlockContended() }
    }

    private func unlockContended() {
        let woken = withState { state -> (next: Entry, nonblocking: [Entry])? in
            state.isHolderBlocked = false
            if state.waiting.isEmpty {
                lockState.store(LockState.free, ordering: .sequentiallyConsistent)
                return nil
            }
            let next = state.waiting.removeFirst()
            guard case .task = next.waiter else { return (next, []) }
            state.isHolderBlocked = true
            return (next, state.nonblocking)
        }
        guard let woken else { return }
        woken.next.waiter.wake()
        for entry in woken.nonblocking { entry.waiter.wake() }
    }
}
