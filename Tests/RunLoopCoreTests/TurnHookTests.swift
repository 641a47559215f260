// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite(.leakCheck) struct TurnHookTests {
    /// Pools that nest, as autorelease pools do: each end belongs to the last beginning.
    private final class Pools: Sendable {
        private let open = Mutex<[Int]>([])
        private let last = Counter("pools")
        let trace: Recorder<String>

        init(_ trace: Recorder<String>) {
            self.trace = trace
        }

        var openCount: Int { open.withLock { $0.count } }
        var madeCount: Int { last.value }

        func push() {
            let number = last.increment()
            open.withLock { $0.append(number) }
            trace.append("push \(number)")
        }

        func pop() {
            let number = open.withLock { $0.popLast() }
            #expect(number != nil)
            trace.append("pop \(number ?? 0)")
        }

        @discardableResult
        func hook(_ loop: ThreadRunLoop, to modes: [RunLoopMode] = [.common]) -> RunLoopTurnHook {
            loop.addTurnHook(to: modes, begin: { self.push() }, end: { self.pop() })
        }
    }

    @Test(
        "S23: a pool is made at entry, before all observers, exchanged before the wait, and drained at exit, after all")
    func order() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            let pools = Pools(trace)
            pools.hook(loop)
            loop.record(trace)
            let mailbox = Mailbox { _ in trace.append("handler") }
            loop.add(mailbox.source)
            mailbox.put(1)
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
            #expect(pools.openCount == 0)
        }
        let twice = { (name: String) in [name, name] }
        #expect(
            trace.elements == ["push 1"] + twice("entry") + twice("beforeTimers") + twice("beforeSources")
                + twice("beforeWaiting") + ["pop 1", "push 2"] + twice("afterWaiting") + ["handler"] + twice("exit")
                + ["pop 2"])
    }

    @Test("S23: each pass that waits has a pool of its own, and a pass that polls shares that of the next")
    func passes() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pools = Pools(trace)
            pools.hook(loop)
            let left = Counter("firings")
            loop.add(
                RunLoopTimer(after: .zero, interval: .milliseconds(1)) { timer in
                    trace.append("timer")
                    if left.increment() == 2 { timer.invalidate() }
                })
            let source = RunLoopSource { trace.append("source") }
            loop.add(source)
            source.signal()
            loop.perform(after: .milliseconds(3)) { source.invalidate() }
            #expect(loop.runGuarded() == .finished)
            #expect(pools.openCount == 0)
        }
        let handled = trace.elements.filter { $0 == "timer" || $0 == "source" }
        #expect(handled == ["source", "timer", "timer"])
        // The first pass performs the source and polls: timer and source are in one pool.
        #expect(trace.elements.prefix(4) == ["push 1", "source", "timer", "pop 1"])
        #expect(trace.elements.last?.hasPrefix("pop") == true)
    }

    @Test("S23, S12: the pools of a nested run are inside of the pool of the run below")
    func nested() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pools = Pools(trace)
            pools.hook(loop, to: [.default, "inner"])
            loop.add(idleSource(), to: "inner")
            loop.add(idleSource(), to: "other")
            loop.perform {
                #expect(loop.run(mode: "inner", for: .zero) == .timedOut)
                trace.append("between")
                #expect(loop.run(mode: "inner", for: .milliseconds(1)) == .timedOut)
                #expect(loop.run(mode: "other", for: .milliseconds(1)) == .timedOut)
                #expect(pools.openCount == 1)
            }
            #expect(loop.runGuarded() == .finished)
            #expect(pools.openCount == 0)
        }
        #expect(trace.elements.prefix(5) == ["push 1", "push 2", "pop 2", "between", "push 3"])
        #expect(trace.elements.dropFirst(5).prefix(3) == ["pop 3", "push 4", "pop 4"])
        #expect(trace.elements.dropFirst(8) == ["pop 1", "push 5", "pop 5"])
    }

    @Test(
        "S23: pools are balanced when a run is stopped, at entry too",
        arguments: [RunLoopActivity.entry, .beforeWaiting])
    func stopped(_ activity: RunLoopActivity) async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pools = Pools(trace)
            pools.hook(loop)
            loop.add(idleSource())
            loop.add(RunLoopObserver(activities: activity) { _, _ in loop.stop() })
            for _ in 0..<2 { #expect(loop.runGuarded() == .stopped) }
            #expect(pools.openCount == 0)
            #expect(pools.madeCount == (activity == .entry ? 2 : 4))
        }
    }

    @Test("S23: a hook that is invalidated inside of a pass ends the pools that are open, where they end anyway")
    func invalidated() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pools = Pools(trace)
            let hook = pools.hook(loop)
            loop.add(idleSource(), to: "inner")
            loop.addCommonMode("inner")
            loop.perform {
                loop.perform(in: ["inner"]) {
                    hook.invalidate()
                    trace.append("invalidated")
                }
                #expect(loop.run(mode: "inner", for: .zero) == .timedOut)
                trace.append("between")
                #expect(loop.run(mode: "inner", for: .zero) == .timedOut)
            }
            #expect(loop.runGuarded() == .finished)
            #expect(!hook.isValid)
            loop.run(mode: "inner", for: .zero)
        }
        #expect(trace.elements == ["push 1", "push 2", "invalidated", "pop 2", "between", "pop 1"])
    }

    @Test("S23: a hook that is added inside of a run begins at the run's next wait")
    func addedInside() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pools = Pools(trace)
            loop.perform { pools.hook(loop) }
            loop.perform(after: .zero) { trace.append("handler") }
            #expect(loop.runGuarded() == .finished)
        }
        #expect(trace.elements == ["push 1", "handler", "pop 1"])
    }

    @Test("S23: a run inside of a hook's own calls has no pool, and the others stay balanced")
    func runInside() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.add(idleSource(), to: "inner")
            let nest = { @Sendable (name: String) in
                trace.append(name)
                _ = loop.run(mode: "inner", for: .milliseconds(1))
            }
            let hook = loop.addTurnHook(to: [.default, "inner"], begin: { nest("begin") }, end: { nest("end") })
            loop.perform { nest("handler") }
            #expect(loop.runGuarded() == .finished)
            hook.invalidate()
            #expect(loop.run(mode: "inner", for: .zero) == .timedOut)
        }
        #expect(
            trace.elements == ["begin", "handler", "begin", "end", "begin", "end", "end", "begin", "end"])
    }

    @Test("a hook and what it holds are released by invalidation, and by the thread's end", arguments: [true, false])
    func released(_ isInvalidated: Bool) async throws {
        let released = Counter("released objects")
        try await onLoop { loop in
            do {
                let probe = LifeProbe(released)
                let hook = loop.addTurnHook(begin: { _ = probe }, end: { _ = probe })
                if isInvalidated { hook.invalidate() }
            }
            #expect(released.value == (isInvalidated ? 1 : 0))
        }
        #expect(released.value == 1)
    }

    @Test("invalidation from another thread races the run: the pools are balanced")
    func race() async throws {
        let trace = Recorder<String>()
        try await besideLoop { loop in
            for _ in 0..<50 {
                let pools = Pools(trace)
                let hook = pools.hook(loop)
                for _ in 0..<3 { loop.wakeUp() }
                hook.invalidate()
                // Twice: the run waits between the two.
                for _ in 0..<2 { try loop.performAndWait(within: Watchdog.longTimeout) {} }
                try loop.performAndWait(within: Watchdog.longTimeout) {
                    loop.perform { #expect(pools.openCount == 0) }
                }
                try loop.performAndWait(within: Watchdog.longTimeout) {}
            }
        }
    }
}
