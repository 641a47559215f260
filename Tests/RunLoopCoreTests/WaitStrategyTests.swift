// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct WaitStrategyTests {
    /// Longer than any test.
    private static let long = Duration.seconds(600)

    @Test("a loop that spins is woken without a sleep", arguments: Sleep.allCases)
    func spinning(insteadOf sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep, isNotified: false) { loop in
            loop.waitStrategy = .spinning(for: Self.long)
            let waiting = Gate("a wait")
            loop.add(idleSource())
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in waiting.open() })
            let waker = runOnThread {
                waiting.wait()
                loop.perform { loop.stop() }
            }
            #expect(loop.runGuarded() == .stopped)
            try waker.join()
            #expect(loop.waitCounts.sleeps == 0)
            #expect(loop.waitCounts.spinsThatPaid <= 1, "it may have found the block before it span")
            #expect(loop.waitCounts.spinsThatDidNot == 0)
        }
    }

    @Test("a loop that spins notices its descriptors")
    func spinningWithDescriptors() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .spinning(for: Self.long)
            let (pipe, waiting) = (try TestPipe(isBlocking: false), Gate("a wait"))
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() })
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in waiting.open() })
            let writer = runOnThread {
                waiting.wait()
                try pipe.put()
            }
            #expect(loop.runGuarded() == .stopped)
            try writer.join()
            #expect(loop.waitCounts.sleeps == 0)
        }
    }

    @Test("a spin ends with the run's limit and with a timer, and needs no sleep for either")
    func spinningToTheLimit() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .spinning(for: Self.long)
            loop.add(idleSource())
            // On a busy machine the time may pass before the loop gets to wait, so each is tried until it spins.
            untilSeen {
                loop.waitCounts.spinsThatPaid >= 1
            } by: {
                #expect(loop.run(for: .milliseconds(2)) == .timedOut)
            }
            let spins = loop.waitCounts.spinsThatPaid
            untilSeen {
                loop.waitCounts.spinsThatPaid > spins
            } by: {
                loop.add(RunLoopTimer(after: .milliseconds(2)) { _ in loop.stop() })
                #expect(loop.runGuarded() == .stopped)
            }
            #expect(loop.waitCounts.sleeps == 0)
            #expect(loop.waitCounts.spinsThatDidNot == 0)
        }
    }

    @Test("a spin that finds nothing is followed by a sleep, and counted")
    func failedSpin() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .spinning(for: .microseconds(10))
            loop.add(idleSource())
            untilSeen {
                loop.waitCounts.spinsThatDidNot >= 1
            } by: {
                #expect(loop.run(for: .milliseconds(5)) == .timedOut)
            }
            #expect(loop.waitCounts.sleeps >= loop.waitCounts.spinsThatDidNot)
        }
    }

    @Test("a loop that blocks never spins, and neither does an adaptive one with nothing to do")
    func noSpin() async throws {
        for strategy in [WaitStrategy.blocking, .adaptive] {
            try await onLoop { loop in
                loop.waitStrategy = strategy
                loop.add(idleSource())
                untilSeen {
                    loop.waitCounts.sleeps >= 10
                } by: {
                    #expect(loop.run(for: .milliseconds(2)) == .timedOut)
                }
                #expect(loop.waitCounts.spinsThatPaid == 0)
                #expect(loop.waitCounts.spinsThatDidNot == 0)
            }
        }
    }

    @Test("nothing polls: an idle loop makes no pass, no wake-up and no spin in 5 s, after a time of many events")
    func idle() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .adaptive
            let pipe = try TestPipe(isBlocking: false)
            let left = Atomic<Int>(500)
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) {})
            let source = RunLoopSource {}
            loop.add(source)
            let timer = RunLoopTimer(after: .zero, interval: .microseconds(20)) { timer in
                if left.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { timer.invalidate() }
            }
            loop.add(timer)
            let mode = try #require(loop.state.withLock { $0.index(of: .default) })
            untilSeen {
                left.load(ordering: .relaxed) == 0
                    && !loop.state.withLock { $0.modes[mode].spins.expectsShortWait }
            } by: {
                #expect(loop.run(for: .milliseconds(50)) == .timedOut)
            }
            let (passes, waits, counts) = (loop.passCount, loop.kernelWaitCount, loop.waitCounts)
            #expect(loop.run(for: .seconds(5)) == .timedOut)
            #expect(loop.passCount == passes + 1)
            #expect(loop.kernelWaitCount <= waits + 1)
            #expect(loop.waitCounts.sleeps == counts.sleeps + 1)
            let spins = { (counts: WaitCounts) in counts.spinsThatPaid + counts.spinsThatDidNot }
            #expect(spins(loop.waitCounts) == spins(counts))
        }
    }

    @Test(
        "an adaptive loop that expects a short wait spins, and learns from it",
        .enabled(if: maySpin(), "needs two processors"))
    func adaptive() async throws {
        try await onLoop { loop in
            let mode = try afterShortWaits(loop) {
                loop.waitCounts.spinsThatPaid + loop.waitCounts.spinsThatDidNot > 0
            } run: {
                loop.run(for: .milliseconds(2))
            }
            let isExpected = loop.state.withLock { $0.modes[mode].spins.expectsShortWait }
            #expect(isExpected == (loop.waitCounts.spinsThatDidNot == 0))
        }
    }

    #if PORT_FAULTS
    @Test(
        "a spin of an adaptive loop yields its processor now and then",
        .enabled(if: maySpin(), "needs two processors"))
    func yields() async throws {
        try await onLoop { loop in
            var yields = 0
            // One that has lost its processor for a time does not.
            _ = try afterShortWaits(loop) {
                yields > 0
            } run: {
                let (result, calls) = SystemCallFaults.counting { loop.run(for: .milliseconds(2)) }
                yields += calls[.sched_yield, default: 0]
                return result
            }
        }
    }

    @Test("a loop that is set to spin keeps its processor")
    func keepsProcessor() async throws {
        try await onLoop { loop in
            loop.waitStrategy = .spinning(for: .milliseconds(1))
            loop.add(idleSource())
            untilSeen {
                loop.waitCounts.spinsThatDidNot > 0
            } by: {
                let (result, calls) = SystemCallFaults.counting { loop.run(for: .milliseconds(5)) }
                #expect(result == .timedOut)
                #expect(calls[.sched_yield] == nil)
            }
        }
    }
    #endif

    @Test("an adaptive loop whose thread may use only one processor spins for no thread that is not known to be there")
    func oneProcessor() async throws {
        try await onLoop { loop in
            try useProcessor(0)
            #expect(sysAllowedProcessorCount() == 1)
            // One that another thread has woken, and then a descriptor, too.
            let pipe = try TestPipe(isBlocking: false)
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() }
            loop.add(source)
            loop.waitStrategy = .blocking
            let waker = runOnThread { loop.perform { loop.stop() } }
            #expect(loop.runGuarded() == .stopped)
            try waker.join()
            let writer = runOnThread {
                while !loop.isWaiting { yieldThread() }
                try pipe.put()
            }
            #expect(loop.runGuarded() == .stopped)
            try writer.join()
            source.invalidate()
            let counts = loop.waitCounts
            var runs = 0
            _ = try afterShortWaits(loop) {
                runs == 20
            } run: {
                runs += 1
                return loop.run(for: .milliseconds(1))
            }
            #expect(loop.waitCounts.spinsThatPaid == counts.spinsThatPaid)
            #expect(loop.waitCounts.spinsThatDidNot == counts.spinsThatDidNot)
        }
    }

    #if PORT_FAULTS
    @Test(
        "an adaptive loop whose thread may use only one processor spins for a thread that is there, and yields it to that",
        .enabled(if: sysProcessor() > 0, "needs a kernel that says where a thread runs"))
    func sharedProcessor() async throws {
        try await onLoop { loop in
            try useProcessor(0)
            loop.waitStrategy = .adaptive
            var yields = 0
            loop.add(idleSource())
            let mode = try #require(loop.state.withLock { $0.index(of: .default) })
            // On a busy machine a yield may be lost, or a wait long, so it is tried until it is seen.
            try untilSeen {
                loop.waitCounts.spinsThatPaid > 0 && yields > 0
            } by: {
                loop.state.withLock { state in
                    for _ in 0..<1024 { state.modes[mode].spins.didWait(.zero, .none) }
                }
                let (_, calls) = try SystemCallFaults.counting { try PingPong(loop).play(rounds: 20) }
                yields += calls[.sched_yield, default: 0]
            }
        }
    }
    #endif

    @Test("two loops that answer each other at once lose nothing, whatever their strategies", arguments: strategies)
    func pingPong(_ strategy: WaitStrategy) async throws {
        try await onLoop { loop in
            loop.waitStrategy = strategy
            let peer = PingPong(loop, peer: strategy)
            try peer.play(rounds: 2000)
            #expect(peer.rounds == 2000)
        }
    }

    private static let strategies: [WaitStrategy] = [.adaptive, .blocking, .spinning(for: .microseconds(20))]
}

/// Whether this machine lets an adaptive loop spin.
private func maySpin() -> Bool {
    ProcessorAllowance().allowsSpinning(at: .now)
}

/// Makes an attempt again and again until what it may cause is seen; the watchdog ends one that is never seen.
private func untilSeen(
    _ isSeen: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation, by attempt: () throws -> Void
) rethrows {
    let deadline = Watchdog.deadline
    repeat {
        if .now >= deadline { return Watchdog.expired("it was never seen", sourceLocation: sourceLocation) }
        try attempt()
    } while !isSeen()
}

/// Runs an adaptive loop again and again, each time as after many short waits, until something is seen. A busy machine
/// may never have short waits of its own.
///
/// - Returns: the index of the loop's default mode.
private func afterShortWaits(
    _ loop: ThreadRunLoop, until isSeen: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation,
    run: () -> RunLoopRunResult
) throws -> Int {
    loop.waitStrategy = .adaptive
    loop.add(idleSource())
    let mode = try #require(loop.state.withLock { $0.index(of: .default) })
    untilSeen(isSeen, sourceLocation: sourceLocation) {
        loop.state.withLock { state in
            for _ in 0..<1024 { state.modes[mode].spins.didWait(.zero, .none) }
        }
        #expect(run() == .timedOut, sourceLocation: sourceLocation)
    }
    return mode
}

/// Two loops that alternately perform a block on each other.
private final class PingPong: Sendable {
    private let here: ThreadRunLoop  // immutable
    private let strategy: WaitStrategy  // immutable
    private let count = Atomic<Int>(0)

    init(_ here: ThreadRunLoop, peer strategy: WaitStrategy = .adaptive) {
        self.here = here
        self.strategy = strategy
    }

    var rounds: Int { count.load(ordering: .relaxed) }

    func play(rounds: Int) throws {
        let ready = Gate("the peer")
        let there = Mutex<ThreadRunLoop?>(nil)
        let peer = runOnThread {
            let loop = ThreadRunLoop.current
            loop.waitStrategy = self.strategy
            loop.add(idleSource())
            there.withLock { $0 = loop }
            ready.open()
            loop.runGuarded()
        }
        ready.wait()
        guard let loop = there.withLock({ $0 }) else { return }
        here.add(idleSource())
        serve(to: loop, rounds)
        here.runGuarded()
        loop.stop()
        try peer.join()
    }

    private func serve(to there: ThreadRunLoop, _ rounds: Int) {
        there.perform { [self] in
            here.perform { [self] in
                if count.wrappingAdd(1, ordering: .relaxed).newValue == rounds { return here.stop() }
                serve(to: there, rounds)
            }
        }
    }
}
