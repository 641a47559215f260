// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@Suite("ThreadEvent", .leakCheck) struct ThreadEventTests {
    @Test("an event that was set before the wait is seen, again and again")
    func setBefore() {
        let event = ThreadEvent()
        event.set()
        event.set()
        #expect(event.wait(until: .distantPast))
        #expect(event.wait(until: .distantFuture))
    }

    @Test("a wait ends at its deadline, not earlier", arguments: [Duration.zero, .milliseconds(2), .seconds(-1)])
    func deadline(duration: Duration) {
        let deadline = MonotonicInstant.after(duration)
        #expect(!ThreadEvent().wait(until: deadline))
        #expect(MonotonicInstant.now >= deadline)
    }

    @Test("a deadline before the clock's start has passed")
    func distantPast() {
        #expect(!ThreadEvent().wait(until: .distantPast))
        #expect(!ThreadEvent().wait(until: MonotonicInstant(nanoseconds: -1)))
    }

    @Test(
        "one set wakes every waiter, with a deadline and without",
        arguments: [MonotonicInstant.distantFuture, .after(.seconds(3600))])
    func manyWaiters(deadline: MonotonicInstant) async throws {
        let (event, waiting) = (ThreadEvent(), Counter("waiting threads"))
        let threads = (0..<20).map { _ in
            runOnThread {
                waiting.increment()
                return event.wait(until: deadline)
            }
        }
        await waiting.waitUntilCount(20)
        event.set()
        for thread in threads { #expect(try await thread.join()) }
    }

    @Test("what was written before the set is read after the wait")
    func ordering() async throws {
        for round in 0..<200 {
            let (event, written) = (ThreadEvent(), Recorder<Int>())
            let thread = runOnThread {
                event.wait(until: .distantFuture)
                return written.elements
            }
            written.append(round)
            event.set()
            #expect(try await thread.join() == [round])
        }
    }
}
