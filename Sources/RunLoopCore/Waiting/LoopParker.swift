// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a loop sleeps and is woken without a lost wake-up and without a needless system call.
//
//   deaf       the loop does not run, or handles an event: it looks at everything before it sleeps, so nobody need ring
//   listening  steps 1 to 6: a wake-up is remembered and the turn does not sleep
//   looking    the loop looks for an event, or spins: whoever has work for it says so here, without a system call
//   dozing     the loop is about to sleep, or does, and no descriptor is watched: whoever has work for it wakes it
//   sleeping   the loop is about to wait for descriptors, or does: whoever has work for it rings its bell, which is one
//   rung       it was woken
//
// Whoever has work first puts it into the loop's state, under its lock, and then calls `endWait`. The loop first
// publishes `looking` and then looks at its state, under the lock. One of the two sees the other. From `looking` to
// `dozing` or `sleeping` it goes in one atomic step, which fails when it was rung meanwhile.

import PortSystem
import Synchronization

/// A loop's phase, and what ends its sleep.
final class LoopParker: Sendable {
    enum Phase: UInt8, AtomicRepresentable {
        case deaf, listening, looking, dozing, sleeping, rung

        /// Whether it looks or sleeps, and was not rung.
        var isWaiting: Bool {
            switch self {
            case .looking, .dozing, .sleeping: true
            case .deaf, .listening, .rung: false
            }
        }
    }

    /// The kernel object, shared with those who are about to ring it while the loop ends.
    final class Bell: Sendable {
        let descriptor: EventDescriptor  // immutable

        init() throws(SystemError) {
            descriptor = try EventDescriptor()
        }
    }

    private let phase = Atomic<Phase>(.deaf)
    private let word = Futex()
    private let madeBell = Mutex<Bell?>(nil)

    /// The kernel object, made when it is first needed.
    ///
    /// - Throws: EMFILE, ENFILE when there is no descriptor left.
    func bell() throws(SystemError) -> Bell {
        try madeBell.withLock { (bell) throws(SystemError) in
            if let bell { return bell }
            let made = try Bell()
            bell = made
            return made
        }
    }

    /// Lets the kernel object go: the loop's thread ends.
    func end() {
        let bell = madeBell.withLock { bell in
            defer { bell = nil }
            return bell
        }
        _ = bell  // goes here, without the lock
    }

    /// Remembers wake-ups from now on: a run or a turn begins.
    func listen() {
        phase.store(.listening, ordering: .sequentiallyConsistent)
    }

    /// Announces a wait.
    ///
    /// - Returns: false when a wake-up has come since `listen()`.
    func willWait() -> Bool {
        phase.compareExchange(expected: .listening, desired: .looking, ordering: .sequentiallyConsistent).exchanged
    }

    /// Announces a sleep; the kernel object exists.
    ///
    /// - Returns: false when the loop was rung since it announced its wait.
    func willSleep() -> Bool {
        willEnter(.sleeping)
    }

    /// The sleep is over, and the loop looks; unless it was rung, whoever has work for it says so without a system call again.
    func didSleep() {
        _ = phase.compareExchange(expected: .sleeping, desired: .looking, ordering: .sequentiallyConsistent)
    }

    /// Announces a sleep in which nothing but a ring is waited for. It takes no descriptor.
    ///
    /// - Returns: what `doze` needs; nil when the loop was rung since it announced its wait.
    func willDoze() -> UInt32? {
        let ticket = word.ticket
        return willEnter(.dozing) ? ticket : nil
    }

    private func willEnter(_ wanted: Phase) -> Bool {
        var seen = phase.load(ordering: .sequentiallyConsistent)
        while seen.isWaiting {
            let result = phase.compareExchange(expected: seen, desired: wanted, ordering: .sequentiallyConsistent)
            if result.exchanged { return true }
            seen = result.original
        }
        return false
    }

    /// Sleeps until the loop is rung, or the deadline has come; perhaps not so long.
    func doze(_ ticket: UInt32, until deadline: MonotonicInstant) {
        word.sleep(ticket, until: deadline)
    }

    /// Whether the wait that was announced has been ended.
    var isRung: Bool { phase.load(ordering: .sequentiallyConsistent) == .rung }

    /// Ignores wake-ups from now on: the loop is awake, and handles.
    func didWake() {
        phase.store(.deaf, ordering: .sequentiallyConsistent)
    }

    /// A run begins, perhaps inside of another: wake-ups are remembered for it from now on.
    ///
    /// - Returns: what `endNesting` needs.
    func beginNesting() -> Phase {
        phase.exchange(.listening, ordering: .sequentiallyConsistent)
    }

    /// A nested run has ended. A wake-up that it did not use goes to the run below, when that listened.
    func endNesting(_ outer: Phase) {
        switch outer {
        case .deaf: phase.store(.deaf, ordering: .sequentiallyConsistent)
        // A readiness check or a condition has run the loop: its wait was given up, so the turn looks and ends.
        case .rung, .looking, .dozing, .sleeping: phase.store(.rung, ordering: .sequentiallyConsistent)
        case .listening:
            _ = phase.compareExchange(expected: .deaf, desired: .listening, ordering: .sequentiallyConsistent)
        }
    }

    /// Wakes the loop: now when it waits; otherwise the turn that it is in does not sleep.
    func wakeUp() {
        if !phase.compareExchange(expected: .listening, desired: .rung, ordering: .sequentiallyConsistent).exchanged {
            endWait()
        }
    }

    /// Ends the loop's wait; does nothing when it does not wait, because it will see what has been put into its state.
    func endWait() {
        var seen = phase.load(ordering: .sequentiallyConsistent)
        while seen.isWaiting {
            let result = phase.compareExchange(expected: seen, desired: .rung, ordering: .sequentiallyConsistent)
            if result.exchanged {
                switch seen {
                case .dozing: word.ring()
                case .sleeping: madeBell.withLock { $0 }?.descriptor.ring()
                default: break
                }
                return
            }
            seen = result.original
        }
    }
}
