// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

/// What operations cost when there are many items: steps over entries and system calls are counted, time is not.
@Suite(.leakCheck) struct ScaleTests {
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
            // The search for what is due adds one step at each due entry and at its two neighbours.
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

    @Test("10,000 signalled port-based sources are performed at O(log n) each, without a system call")
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
            // On the list by the signal, off and on again by the check, off to be performed, and the signal after it.
            let steps = loop.state.withLock { $0.modes[0].ready.steps } - before
            #expect(Double(steps) <= 6 * Self.allowance(count) * Double(count))
        }
    }

    @Test("16,000 blocks, requests and jobs cost a run in another mode nothing, and O(1) each when they are performed")
    func waitingBlocks() async throws {
        try await onLoop { loop in
            let count = 16_000
            let performed = LoopBound(0)
            let own = LoopBound(0)
            let posting = Self.blockSteps(loop) {
                for number in 0..<count { Self.post(number, to: loop) { performed.value += 1 } }
            }
            #expect(posting == 0)
            loop.add(RunLoopSource {}, to: "private")
            let rounds = 1000
            let source = RunLoopSource { loop.perform { performed.value += 1 } }
            loop.add(source, to: "private")
            let running = Self.blockSteps(loop) {
                for _ in 0..<rounds {
                    source.signal()
                    loop.run(mode: "private", for: .zero)
                }
            }
            #expect(running == 0)
            let performing = Self.blockSteps(loop) {
                for _ in 0..<rounds { loop.perform(in: ["private"]) { own.value += 1 } }
                loop.run(mode: "private", for: .zero)
            }
            #expect(performing <= 4 * rounds && own.value == rounds)
            // A step at the first of each of three queues, and one when it is removed.
            #expect(Self.blockSteps(loop) { loop.run() } <= 5 * (count + rounds))
            #expect(performed.value == count + rounds)
        }
    }

    @Test("16,000 requests: cancelling each, the last first, costs O(1), and the loop visits none of them")
    func cancelledRequests() async throws {
        try await onLoop { loop in
            let count = 16_000
            let requests = (0..<count).map { _ in
                loop.perform(in: [.default, "other"], for: nil) { Issue.record("called") }
            }
            loop.perform {}
            #expect(Self.blockSteps(loop) { for request in requests.reversed() { request.cancel() } } <= 6 * count)
            #expect(Self.blockSteps(loop) { loop.run() } <= 100)
            #expect(loop.state.withLock { $0.blocks.isEmpty })
        }
    }

    @Test("1,000 modes cost an item nothing that is in two of them")
    func manyModes() async throws {
        try await onLoop { loop in
            let count = 1000
            let modes = (0..<count).map { RunLoopMode("mode \($0)") }
            for mode in modes { loop.add(RunLoopTimer(fireDate: .distantFuture) { _ in }, to: mode) }
            let performed = LoopBound(0)
            let source = RunLoopSource { performed.value += 1 }
            let mailbox = Mailbox { _ in performed.value += 1 }
            let timer = RunLoopTimer(fireDate: .distantFuture, interval: .seconds(1000)) { _ in performed.value += 1 }
            let before = loop.state.withLock { $0.modeSteps }
            for mode in modes.prefix(2) {
                loop.add(source, to: mode)
                loop.add(mailbox.source, to: mode)
                loop.add(timer, to: mode)
            }
            for number in 0..<count {
                source.signal()
                mailbox.put(number)
                timer.setNextFireDate(.distantPast)
                for _ in 0..<2 { loop.run(mode: modes[number % 2], for: .zero) }
            }
            #expect(performed.value == 3 * count)
            loop.remove(source, from: modes[0])
            loop.remove(mailbox.source, from: modes[0])
            mailbox.put(count)
            loop.run(mode: modes[0], for: .zero)
            #expect(performed.value == 3 * count)
            loop.run(mode: modes[1], for: .zero)
            #expect(performed.value == 3 * count + 1)
            source.invalidate()
            timer.invalidate()
            mailbox.source.invalidate()
            // Two modes for each of: signalled, performed, signalled by `ring()`, checked again, given a date, fired,
            // given the next date.
            #expect(loop.state.withLock { $0.modeSteps } - before <= 2 * 7 * count + 100)
            #expect(!loop.contains(source, in: modes[1]) && !loop.contains(timer, in: modes[1]))
        }
    }

    @Test("a mode that only blocks were posted for costs a name, and becomes a mode when it is run")
    func namesOfBlocks() async throws {
        try await onLoop { loop in
            let modes = (0..<1000).map { RunLoopMode("mode \($0)") }
            for mode in modes { loop.perform(in: [mode], for: nil) {}.cancel() }
            #expect(loop.allModes == Set(modes + [.default]))
            #expect(loop.state.withLock { $0.modes.count + $0.blocks.lineLength } == 1)
            let performed = LoopBound(0)
            loop.perform(in: [modes[0]]) { performed.value += 1 }
            #expect(loop.run(mode: modes[0], for: .zero) == .timedOut && performed.value == 1)
            #expect(loop.run(mode: modes[1], for: .zero) == .finished)
            #expect(loop.allModes.count == 1001)
        }
    }

    /// Posts a block, a request or a job.
    private static func post(_ number: Int, to loop: ThreadRunLoop, _ body: @escaping @Sendable () -> Void) {
        switch number % 3 {
        case 0: loop.perform(in: [number.isMultiple(of: 2) ? .default : .common], body)
        case 1: loop.perform(for: nil, body)
        default: Task(executorPreference: loop) { body() }
        }
    }

    /// What the loop's blocks cost during a closure, in steps over entries.
    private static func blockSteps(_ loop: ThreadRunLoop, _ body: () -> Void) -> Int {
        let before = loop.state.withLock { $0.blocks.steps }
        body()
        return loop.state.withLock { $0.blocks.steps } - before
    }

    /// The system calls that a closure makes; none are counted in a release build.
    private func systemCalls(_ body: () -> Void) -> [SystemCall: Int] {
        #if PORT_FAULTS
        return SystemCallFaults.counting(body).calls
        #else
        body()
        return [:]
        #endif
    }
}
