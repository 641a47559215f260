// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct BlockTests {
    @Test("S8: blocks run in the order in which they were posted, and the run finishes after the last")
    func order() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            for number in 0..<10 { loop.perform { seen.append(number) } }
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == Array(0..<10))
    }

    @Test("S8: a block that a block posts does not wait for the limit")
    func posted() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform {
                seen.append(1)
                loop.perform {
                    seen.append(2)
                    loop.perform { loop.stop() }
                }
            }
            #expect(loop.runGuarded() == .stopped)
        }
        #expect(seen.elements == [1, 2])
    }

    @Test("S8: a block runs only in its modes, and keeps its position meanwhile")
    func modes() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            loop.perform(in: ["a"]) { seen.append(1) }
            loop.perform(in: ["a", "b"]) { seen.append(2) }
            loop.perform(in: ["b"]) { seen.append(3) }
            loop.perform(in: [.common]) { seen.append(4) }
            #expect(loop.runGuarded(mode: "b") == .finished)
            #expect(seen.takeAll() == [2, 3])
            loop.addCommonMode("a")
            #expect(loop.runGuarded(mode: "a") == .finished)
            #expect(seen.takeAll() == [1, 4])
            #expect(loop.run() == .finished)
            #expect(seen.elements.isEmpty)
        }
    }

    @Test("S8: a block from another thread wakes the loop", arguments: Sleep.allCases)
    func wakes(from sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep) { loop in
            loop.add(idleSource())
            let sleeps = SleepObserver(loop)
            let poster = runOnThread {
                sleeps.wait()
                loop.perform { loop.stop() }
            }
            #expect(loop.runGuarded() == .stopped)
            try poster.join()
        }
    }

    @Test("a block posted from a source runs before the run returns")
    func beforeReturn() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let mailbox = Mailbox { _ in loop.perform { seen.append("block") } }
            loop.add(mailbox.source)
            mailbox.put(1)
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
            #expect(seen.elements == ["block"])
        }
    }

    @Test(
        "a nested run in a block continues with the blocks posted before it, in order, so it may wait for one")
    func nestedOrder() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            loop.perform {
                seen.append(1)
                loop.perform {
                    seen.append(3)
                    loop.stop()
                }
                #expect(loop.runGuarded() == .stopped)
                seen.append(4)
            }
            loop.perform { seen.append(2) }
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == [1, 2, 3, 4])
    }

    @Test("what a block posts waits for the next phase, also when a nested run has called the rest")
    func nextPhase() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            loop.add(RunLoopObserver(activities: .beforeTimers) { _, _ in seen.append("pass") }, to: "outer")
            loop.add(idleSource(), to: "inner")
            loop.perform(in: ["outer"]) {
                loop.perform(in: ["outer"]) { seen.append("later") }
                loop.run(mode: "inner", for: .zero)
                seen.append("first")
            }
            loop.perform(in: ["inner", "outer"]) { seen.append("inside") }
            loop.perform(in: ["outer"]) { seen.append("last") }
            #expect(loop.runGuarded(mode: "outer") == .finished)
        }
        #expect(seen.elements == ["pass", "inside", "first", "last", "later"])
    }

    @Test("a request that is cancelled by a block of the same phase is not called")
    func cancelledInPhase() async throws {
        try await onLoop { loop in
            let second = LoopBound<PerformRequest?>(nil)
            loop.perform { #expect(second.value?.cancel() == true) }
            second.value = loop.perform(for: nil) { Issue.record("called") }
            loop.perform {
                #expect(loop.state.withLock { $0.blocks.isEmpty })
                second.value = nil
            }
            #expect(loop.runGuarded() == .finished)
        }
    }
}
