// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Futex", .leakCheck) struct FutexTests {
    @Test(
        "a thread signalled since it read the expected value does not sleep, however often it was signalled before",
        arguments: [0, .max] as [UInt32])
    func signalled(count: UInt32) {
        let word = Futex(signalled: count)
        let expected = word.value
        word.signal()
        word.sleep(expected, until: .distantFuture)
        #expect(word.value != expected)
    }

    @Test("a sleep without a signal is over at its deadline, also at one that has passed")
    func deadline() {
        let word = Futex()
        word.sleep(word.value, until: .distantPast)
        let deadline = MonotonicInstant.after(.milliseconds(2))
        var sleepCount = 0
        while MonotonicInstant.now < deadline {
            word.sleep(word.value, until: deadline)
            sleepCount += 1
        }
        // The kernel may wake a thread spuriously, but hardly ever does.
        #expect(sleepCount <= 3)
    }

    /// The futex on which one of two threads waits.
    private final class Side: Sendable {
        let word = Futex()
        let count = Atomic<Int>(0)

        func signal() {
            count.add(1, ordering: .sequentiallyConsistent)
            word.signal()
        }

        func wait(for wanted: Int) -> Bool {
            let deadline = Watchdog.deadline
            while MonotonicInstant.now < deadline {
                let expected = word.value
                if count.load(ordering: .sequentiallyConsistent) >= wanted { return true }
                word.sleep(expected, until: deadline)
            }
            return false
        }
    }

    @Test("two threads that signal each other in alternation miss no signal")
    func alternation() async throws {
        let (here, there) = (Side(), Side())
        let rounds = 5000
        let other = runOnThread {
            for round in 1...rounds {
                guard there.wait(for: round) else { return }
                here.signal()
            }
        }
        let answered = try await onNewThread {
            (1...rounds).allSatisfy { round in
                there.signal()
                return here.wait(for: round)
            }
        }
        try await other.join()
        #expect(answered)
    }
}
