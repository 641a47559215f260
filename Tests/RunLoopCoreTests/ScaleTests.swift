// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

/// What operations cost when there are many items: looks at entries and system calls are counted, time is not.
@Suite(.census) struct ScaleTests {
    /// What an operation on one of `count` entries may cost: a walk through a heap's height, down and up.
    private static func allowance(_ count: Int) -> Double { 2 * log2(Double(count)) + 4 }

    @Test("100,000 timers: adding, putting off, firing and removing each cost O(log n), and no system call")
    func timers() async throws {
        try await onLoop { loop in
            let count = 100_000
            let fired = LoopBound(0)
            let timers = (0..<count).map { number in
                RunLoopTimer(after: .seconds(1000 + number * 7919 % 100_003)) { _ in fired.value += 1 }
            }
            func steps(_ body: () -> Void) -> Double {
                let before = loop.state.withLock { $0.modes[0].timers.steps }
                let calls = systemCalls(body)
                #expect(calls == [:])
                return Double(loop.state.withLock { $0.modes[0].timers.steps } - before)
            }
            // Each timer is in two heaps.
            let allowance = 2 * Self.allowance(count)
            #expect(steps { for timer in timers { loop.add(timer) } } <= allowance * Double(count))
            #expect(
                steps { for timer in timers.prefix(1000) { timer.setNextFireDate(.distantFuture) } } <= allowance
                    * 1000)
            #expect(
                steps { for timer in timers.suffix(1000) { timer.setNextFireDate(.distantPast) } } <= allowance
                    * 1000)
            // Looking for what is due adds one look at each due entry and its two neighbours.
            #expect(steps { loop.run(for: .zero) } <= (allowance + 3) * 1000)
            #expect(fired.value == 1000)
            #expect(steps { for timer in timers { timer.invalidate() } } <= allowance * Double(count))
            #expect(loop.nextTimerFireDate() == nil)
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test("10,000 custom sources: signalling and performing each cost O(log n), all in one run or one per run")
    func customSources() async throws {
        try await onLoop { loop in
            let count = 10_000
            let performed = LoopBound(0)
            let sources = (0..<count).map { number in RunLoopSource(order: number * 7919 % 101) { performed.value += 1 }
            }
            for source in sources { loop.add(source) }
            func steps(_ body: () -> Void) -> Double {
                let before = loop.state.withLock { $0.modes[0].signalled.steps }
                let calls = systemCalls(body)
                #expect(calls == [:])
                return Double(loop.state.withLock { $0.modes[0].signalled.steps } - before)
            }
            let allowance = Self.allowance(count) * Double(count)
            #expect(steps { for source in sources { source.signal() } } <= allowance)
            #expect(steps { loop.run(for: .zero) } <= allowance + 3 * Double(count))
            #expect(performed.value == count)
            #expect(steps { for source in sources { source.signal() } } <= allowance)
            let oneByOne = steps {
                for _ in 0..<count { #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .handledSource) }
            }
            #expect(oneByOne <= allowance)
            #expect(performed.value == 2 * count)
            for source in sources { source.invalidate() }
        }
    }

    @Test("10,000 port-based sources that rang are performed at O(log n) each, without a system call")
    func portSources() async throws {
        try await onLoop { loop in
            let count = 10_000
            let performed = LoopBound(0)
            let boxes = (0..<count).map { _ in Mailbox { _ in performed.value += 1 } }
            for mailbox in boxes { loop.add(mailbox.source) }
            loop.run(for: .zero)
            let before = loop.state.withLock { $0.modes[0].ready.steps }
            let calls = systemCalls {
                for (number, mailbox) in boxes.enumerated() { mailbox.put(number) }
                for _ in 0..<count { #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .handledSource) }
            }
            #expect(calls == [:])
            #expect(performed.value == count)
            // On the list by the ring, off and on again by the check, off to be performed, and the ring after it.
            let steps = loop.state.withLock { $0.modes[0].ready.steps } - before
            #expect(Double(steps) <= 6 * Self.allowance(count) * Double(count))
        }
    }

    /// The system calls that a closure makes; none are counted in a release build.
    private func systemCalls(_ body: () -> Void) -> [SystemCall: Int] {
        #if DEBUG
        return SystemCallFaults.counting(body).calls
        #else
        body()
        return [:]
        #endif
    }
}
