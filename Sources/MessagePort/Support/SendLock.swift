// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The send lock of a connection: one sender at a time, so that the pieces of large messages never mix. It is FIFO, and
/// is acquired with a deadline, because the holder may itself be waiting for room. The holder may be a task.
final class SendLock: Sendable {
    /// The part that is read without the mutex. It changes from `free` to `taken` and back without the mutex, and
    /// otherwise under it.
    private enum Gate {
        static let free: UInt8 = 0
        static let taken: UInt8 = 1
        /// It is locked, and the thread that unlocks it reads the rest of the state.
        static let crowded: UInt8 = 2
    }

    private struct State {
        /// The holder waits for room, or is a task that does not run yet.
        var isHeldUp = false
        var waiting: [Place] = []

        /// The waiters that do not wait for a holder that is held up.
        var impatient: [Place] { waiting.filter { !$0.isPatient } }
    }

    /// A slot in the queue of waiters.
    private final class Place: Sendable {
        let waiter: Waiter  // immutable
        /// Whether it also waits for a holder that waits for room.
        let isPatient: Bool  // immutable

        init(_ waiter: Waiter, isPatient: Bool = true) {
            self.waiter = waiter
            self.isPatient = isPatient
        }
    }

    private let gate = Atomic<UInt8>(Gate.free)
    private let state = Mutex(State())

    /// Whether it is locked.
    var isLocked: Bool { gate.load(ordering: .sequentiallyConsistent) != Gate.free }

    /// How many senders wait for the lock.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Locks.
    ///
    /// - Returns: false when it did not come before the deadline.
    func lock(until deadline: MonotonicInstant) -> Bool {
        guard let place = lockOrEnqueue(.thread(ThreadEvent())), case .thread(let event) = place.waiter,
            !event.wait(until: deadline)
        else { return true }
        return !leave(place)
    }

    /// Locks if it is free.
    ///
    /// - Returns: whether it was.
    func tryLock() -> Bool {
        gate.compareExchange(expected: Gate.free, desired: Gate.taken, ordering: .sequentiallyConsistent).exchanged
    }

    /// Locks it if it is free; otherwise its holder will wake a waiter when it unlocks. Called under the lock of `state`.
    private func tryLockOrCrowd() -> Bool {
        while !tryLock() {
            let (exchanged, found) = gate.compareExchange(
                expected: Gate.taken, desired: Gate.crowded, ordering: .sequentiallyConsistent)
            if exchanged || found == Gate.crowded { return false }
        }
        return true
    }

    /// Locks for a sender that does not wait for room. It waits for senders that are sending, which soon ends, but not
    /// for a holder that waits for room, and not for a task that holds the lock and has no thread yet: the thread it
    /// needs may be this one.
    ///
    /// - Returns: false when there is no room, or that is not known yet.
    func lockUnlessHeldUp() -> Bool {
        let event = ThreadEvent()
        let place = Place(.thread(event), isPatient: false)
        let mustWait = state.withLock { state -> Bool? in
            if state.isHeldUp { return nil }
            if tryLockOrCrowd() { return false }
            state.waiting.append(place)
            return true
        }
        guard let mustWait else { return false }
        if !mustWait { return true }
        event.wait(until: .distantFuture)
        return !leave(place)
    }

    /// The holder is about to wait for room: wakes the senders that do not wait for that.
    func holdUp() {
        let impatient = state.withLock { state in
            state.isHeldUp = true
            gate.store(Gate.crowded, ordering: .sequentiallyConsistent)
            return state.impatient
        }
        for place in impatient { place.waiter.wake() }
    }

    /// The holder continues: it no longer waits for room.
    func goOn() {
        state.withLock { $0.isHeldUp = false }
    }

    /// Locks in a task, which holds no thread while it waits.
    ///
    /// - Throws: why the wait ended; the task does not hold the lock then.
    nonisolated(nonsending) func lock(waiting wait: SendWait) async throws(PortError) {
        guard let place = lockOrEnqueue(.task(wait)) else { return }
        while isWaiting(place) {
            do throws(PortError) {
                try await wait.wait()
            } catch {
                // Handed over at the last moment: the next step that has to wait finds that the wait has ended.
                if leave(place) { throw error }
            }
        }
        goOn()
    }

    /// Locks if it is free.
    ///
    /// - Returns: a place in the line when it is not.
    private func lockOrEnqueue(_ waiter: @autoclosure () -> Waiter) -> Place? {
        state.withLock { state in
            if tryLockOrCrowd() { return nil }
            let place = Place(waiter())
            state.waiting.append(place)
            return place
        }
    }

    private func isWaiting(_ place: Place) -> Bool {
        state.withLock { $0.waiting.contains { $0 === place } }
    }

    /// - Returns: false when the lock was handed over before.
    private func leave(_ place: Place) -> Bool {
        state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0 === place }) else { return false }
            state.waiting.remove(at: index)
            return true
        }
    }

    /// Passes the turn to the next in line. A task is held up until it runs: if all threads that could run it waited
    /// for it here, it never would.
    func unlock() {
        if gate.compareExchange(expected: Gate.taken, desired: Gate.free, ordering: .sequentiallyConsistent).exchanged {
            return
        }
        let woken = state.withLock { state -> (next: Place, impatient: [Place])? in
            state.isHeldUp = false
            if state.waiting.isEmpty {
                gate.store(Gate.free, ordering: .sequentiallyConsistent)
                return nil
            }
            let next = state.waiting.removeFirst()
            guard case .task = next.waiter else { return (next, []) }
            state.isHeldUp = true
            return (next, state.impatient)
        }
        guard let woken else { return }
        woken.next.waiter.wake()
        for place in woken.impatient { place.waiter.wake() }
    }
}
