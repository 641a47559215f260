// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.census) struct BlockTests {
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

    @Test("S8: a block runs only in its modes, and keeps its place meanwhile")
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

    @Test("S8: a block from another thread wakes the loop", arguments: WakeDescriptor.Kind.allCases)
    func wakes(_ kind: WakeDescriptor.Kind) async throws {
        try await onLoop(kind) { loop in
            loop.add(idleSource())
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let poster = runOnThread {
                asleep.wait()
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
}
