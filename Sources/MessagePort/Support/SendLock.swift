// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The turn to send on a connection: one sender at a time, so that the pieces of large messages never mix; first come,
/// first served; waited for with a deadline, because the holder may itself be waiting for room. The holder may be a
/// task.
final class SendLock: Sendable {
    /// What is known without the lock. It changes from `free` to `taken`, and back, without it, and otherwise under it.
    private enum Gate {
        static let free: UInt8 = 0
        static let taken: UInt8 = 1
        /// It is taken, and who gives it looks at the rest.
        static let crowded: UInt8 = 2
    }

    private struct State {
        /// Who has the turn waits for room, or is a task that does not run yet.
        var isHeldUp = false
        var waiting: [Place] = []

        /// Those in the line who do not wait for a holder that is held up.
        var impatient: [Place] { waiting.filter { !$0.isPatient } }
    }

    /// A place in the line.
    private final class Place: Sendable {
        let waiter: Waiter  // immutable
        /// Whether it also waits for one who waits for room.
        let isPatient: Bool  // immutable

        init(_ waiter: Waiter, isPatient: Bool = true) {
            self.waiter = waiter
            self.isPatient = isPatient
        }
    }

    private let gate = Atomic<UInt8>(Gate.free)
    private let state = Mutex(State())

    /// Whether somebody has the turn.
    var isLocked: Bool { gate.load(ordering: .sequentiallyConsistent) != Gate.free }

    /// How many senders wait for the turn.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Takes the turn.
    ///
    /// - Returns: false when it did not come before the deadline.
    func lock(until deadline: MonotonicInstant) -> Bool {
        guard let place = lockOrEnqueue(.thread(ThreadEvent())), case .thread(let event) = place.waiter,
            !event.wait(until: deadline)
        else { return true }
        return !leave(place)
    }

    /// Takes the turn if it is free.
    ///
    /// - Returns: whether it was.
    func tryLock() -> Bool {
        gate.compareExchange(expected: Gate.free, desired: Gate.taken, ordering: .sequentiallyConsistent).exchanged
    }

    /// Takes the turn if it is free; otherwise whoever has it will look who waits. Called under the lock.
    private func tryLockOrCrowd() -> Bool {
        while !tryLock() {
            let (exchanged, found) = gate.compareExchange(
                expected: Gate.taken, desired: Gate.crowded, ordering: .sequentiallyConsistent)
            if exchanged || found == Gate.crowded { return false }
        }
        return true
    }

    /// Takes the turn for a sender that does not wait for room: it waits for those who are sending, which soon ends,
    /// but not for one who waits for room, and not for a task that has got the turn and no thread yet: that may be this
    /// one.
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

    /// Who has the turn is about to wait for room: those who do not want to wait for that are told.
    func holdUp() {
        let impatient = state.withLock { state in
            state.isHeldUp = true
            gate.store(Gate.crowded, ordering: .sequentiallyConsistent)
            return state.impatient
        }
        for place in impatient { place.waiter.wake() }
    }

    /// Who has the turn goes on.
    func goOn() {
        state.withLock { $0.isHeldUp = false }
    }

    /// As above, in a task, which holds no thread while it waits.
    ///
    /// - Throws: why the wait ended; the turn is not the task's then.
    nonisolated(nonsending) func lock(waiting wait: SendWait) async throws(PortError) {
        guard let place = lockOrEnqueue(.task(wait)) else { return }
        while isWaiting(place) {
            do throws(PortError) {
                try await wait.wait()
            } catch {
                // Given at the last moment: what follows meets the end of the wait when it has to wait itself.
                if leave(place) { throw error }
            }
        }
        goOn()
    }

    /// Takes the turn when it is free.
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

    /// - Returns: false when the turn was given before.
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
