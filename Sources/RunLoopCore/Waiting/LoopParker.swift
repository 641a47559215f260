// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a loop sleeps and is woken, without a lost wake-up and without an unnecessary system call. Its phases:
//
//   `notListening`  the loop is not running, or is handling an event. It checks everything before it sleeps, so no
//                   signal is needed
//   `listening`     steps 1 to 6: a wake-up is remembered, and this pass does not sleep
//   `polling`       the loop polls for an event, or spins: a thread with work for it sets `notified`, without a system
//                   call
//   `onFutex`       the loop is about to sleep on the futex, or does; no descriptor is watched. A thread with work wakes
//                   the futex
//   `onDescriptors` the loop is about to wait for descriptors, or does. A thread with work signals the event
//                   descriptor, which is one of them
//   `notified`      the loop was woken
//
// A thread with work first puts it into the loop's state, under its lock, and then calls `endWait`. The loop first
// publishes `polling`, and then reads its state, under the lock. One of the two sees the other. The step from `polling`
// to `onFutex` or `onDescriptors` is one atomic step, which fails when the loop was woken in between.

import PortSystem
import Synchronization

/// A loop's phase, and what ends its sleep.
final class LoopParker: Sendable {
    enum Phase: UInt8, AtomicRepresentable {
        case notListening, listening, polling, onFutex, onDescriptors, notified

        /// Whether the loop polls or sleeps, and was not woken.
        var isWaiting: Bool {
            switch self {
            case .polling, .onFutex, .onDescriptors: true
            case .notListening, .listening, .notified: false
            }
        }
    }

    private let phase = Atomic<Phase>(.notListening)
    /// The processor of the thread that ended the last wait, numbered from one; zero: not known.
    private let processor = Atomic<UInt32>(0)
    private let word = Futex()
    private let madeWakeEvent = Mutex<Shared<EventDescriptor>?>(nil)

    /// The kernel object, made when it is first needed, and shared with the threads that are about to signal it while
    /// the loop ends.
    ///
    /// - Throws: EMFILE, ENFILE when there is no descriptor left.
    func wakeEvent() throws(SystemError) -> Shared<EventDescriptor> {
        try madeWakeEvent.withLock { (wakeEvent) throws(SystemError) in
            if let wakeEvent { return wakeEvent }
            let made = Shared(try EventDescriptor())
            wakeEvent = made
            return made
        }
    }

    /// Releases the kernel object: the loop's thread ends.
    func end() {
        _ = madeWakeEvent.withLock { $0.take() }  // released without the lock
    }

    /// Remembers wake-ups from now on: a run or a pass begins.
    func listen() {
        phase.store(.listening, ordering: .sequentiallyConsistent)
    }

    /// Announces a wait.
    ///
    /// - Returns: false when a wake-up has come since `listen()`.
    func willWait() -> Bool {
        phase.compareExchange(expected: .listening, desired: .polling, ordering: .sequentiallyConsistent).exchanged
    }

    /// Announces a sleep; the kernel object exists.
    ///
    /// - Returns: false when the loop was woken since it announced its wait.
    func willSleep() -> Bool {
        willEnter(.onDescriptors)
    }

    /// The sleep is over, and the loop polls. Unless it was woken, a thread with work again needs no system call to
    /// wake it.
    func didSleep() {
        _ = phase.compareExchange(expected: .onDescriptors, desired: .polling, ordering: .sequentiallyConsistent)
    }

    /// Announces a sleep that only a wake-up or the deadline ends. It uses no descriptor.
    ///
    /// - Returns: what `sleepOnFutex` needs; nil when the loop was woken since it announced its wait.
    func willSleepOnFutex() -> UInt32? {
        let expected = word.value
        return willEnter(.onFutex) ? expected : nil
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

    /// Sleeps until the loop is woken or the deadline has passed; may return earlier.
    func sleepOnFutex(_ expected: UInt32, until deadline: MonotonicInstant) {
        word.sleep(expected, until: deadline)
    }

    /// Whether the announced wait has been ended.
    var isNotified: Bool { phase.load(ordering: .sequentiallyConsistent) == .notified }

    /// The processor on which the thread ran that ended the last wait, numbered from one; zero when that is not known, or
    /// no thread ended it.
    var wakerProcessor: UInt32 { processor.load(ordering: .relaxed) }

    /// A wait was ended by no thread, but by a descriptor.
    func forgetWaker() { processor.store(0, ordering: .relaxed) }

    /// Ignores wake-ups from now on: the loop is awake, and handles an event.
    func didWake() {
        phase.store(.notListening, ordering: .sequentiallyConsistent)
    }

    /// A run begins, perhaps inside another: wake-ups are remembered for it from now on.
    ///
    /// - Returns: what `endNesting` needs.
    func beginNesting() -> Phase {
        phase.exchange(.listening, ordering: .sequentiallyConsistent)
    }

    /// A nested run has ended. A wake-up that it did not use goes to the run below, if that one was listening.
    func endNesting(_ outer: Phase) {
        switch outer {
        case .notListening: phase.store(.notListening, ordering: .sequentiallyConsistent)
        // A readiness check or a condition has run the loop and so given up its wait: the pass polls once more and
        // ends.
        case .notified, .polling, .onFutex, .onDescriptors: phase.store(.notified, ordering: .sequentiallyConsistent)
        case .listening:
            _ = phase.compareExchange(expected: .notListening, desired: .listening, ordering: .sequentiallyConsistent)
        }
    }

    /// Wakes the loop: at once when it waits; otherwise its current pass does not sleep.
    func wakeUp() {
        if !phase.compareExchange(expected: .listening, desired: .notified, ordering: .sequentiallyConsistent).exchanged
        {
            endWait()
        }
    }

    /// Ends the loop's wait. Does nothing when the loop does not wait: it will see what was put into its state.
    func endWait() {
        var seen = phase.load(ordering: .sequentiallyConsistent)
        while seen.isWaiting {
            processor.store(sysProcessor(), ordering: .relaxed)
            let result = phase.compareExchange(expected: seen, desired: .notified, ordering: .sequentiallyConsistent)
            if result.exchanged {
                switch seen {
                case .onFutex: word.signal()
                case .onDescriptors: madeWakeEvent.withLock { $0 }?.value.signal()
                default: break
                }
                return
            }
            seen = result.original
        }
    }
}
