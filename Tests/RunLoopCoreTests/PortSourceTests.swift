// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct PortSourceTests {
    @Test("S5: ring() on another thread wakes the loop by itself", arguments: Sleep.allCases)
    func wakes(from sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep) { loop in
            let mailbox = Mailbox { _ in loop.stop() }
            loop.add(mailbox.source)
            let sleeps = SleepObserver(loop)
            let sender = runOnThread {
                sleeps.wait()
                mailbox.put(1)
            }
            #expect(loop.runGuarded() == .stopped)
            try sender.join()
        }
    }

    @Test("ring() without anything there performs nothing")
    func falseRing() async throws {
        try await onLoop { loop in
            let source = RunLoopSource(readiness: { false }) { Issue.record("performed") }
            loop.add(source)
            source.ring()
            #expect(source.isSignalled)
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            #expect(!source.isSignalled)
        }
    }

    @Test("a source that was ready before it was added is noticed, and again as long as something is left")
    func levels() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            let mailbox = Mailbox { item in
                seen.append(item)
                if item == 3 { loop.stop() }
            }
            for item in 1...3 { mailbox.putSilently(item) }
            loop.add(mailbox.source)
            #expect(loop.runGuarded() == .stopped)
        }
        #expect(seen.elements == [1, 2, 3])
    }

    @Test("of ready sources the lowest order is performed first, equal ones in the order of becoming ready")
    func order() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let boxes = ["late": 5, "first": 0, "second": 0, "early": -5].map { name, order in
                (name, Mailbox(order: order) { item in seen.append("\(name) \(item)") })
            }
            let named = Dictionary(uniqueKeysWithValues: boxes)
            for (_, mailbox) in boxes { loop.add(mailbox.source) }
            #expect(loop.run(for: .zero) == .timedOut)  // uses up the check that each gets for being new
            for item in 1...2 {
                for name in ["late", "first", "second", "early"] { named[name]?.put(item) }
            }
            for _ in 0..<8 { loop.run(for: .zero) }
        }
        let pass = ["early", "first", "second", "late"]
        #expect(seen.elements == pass.map { "\($0) 1" } + pass.map { "\($0) 2" })
    }

    @Test("a source keeps what it has for a mode that does not run yet, and for each of several modes")
    func otherModes() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let mailbox = Mailbox { item in seen.append("\(loop.currentMode?.description ?? "") \(item)") }
            loop.add(mailbox.source, to: "a")
            loop.add(mailbox.source, to: "b")
            loop.add(idleSource())
            mailbox.put(1)
            mailbox.put(2)
            mailbox.put(3)
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            for mode in ["a", "b", "a"] as [RunLoopMode] {
                #expect(loop.run(mode: mode, for: .zero, returnAfterSourceHandled: true) == .handledSource)
            }
            #expect(loop.run(mode: "b", for: .zero, returnAfterSourceHandled: true) == .timedOut)
        }
        #expect(seen.elements == ["a 1", "b 2", "a 3"])
    }

    @Test("S12: a nested run in the same mode sees what the handler left in its own source")
    func nested() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            let mailbox = Mailbox { item in
                if item == 1 {
                    #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
                }
                seen.append(item)
            }
            loop.add(mailbox.source)
            mailbox.put(1)
            mailbox.put(2)
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
        }
        #expect(seen.elements == [2, 1])
    }

    @Test("a source that was removed or invalidated gets no further callout")
    func removed() async throws {
        try await onLoop { loop in
            let removed = Mailbox { _ in Issue.record("performed after removal") }
            let invalid = Mailbox { _ in Issue.record("performed after invalidation") }
            for mailbox in [removed, invalid] {
                loop.add(mailbox.source)
                mailbox.put(1)
            }
            loop.add(idleSource())
            loop.remove(removed.source)
            invalid.source.invalidate()
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            invalid.source.ring()
            removed.source.ring()
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
        }
    }

    @Test("a source in the modes of two loops is served by both")
    func twoLoops() async throws {
        let seen = Counter("items")
        let loops = Recorder<ThreadRunLoop>("loops")
        let mailbox = Mailbox { _ in seen.increment() }
        let threads = (0..<2).map { _ in
            runOnThread {
                let loop = ThreadRunLoop.current
                loop.add(mailbox.source)
                loops.append(loop)
                return loop.runGuarded()
            }
        }
        for loop in await loops.waitUntilCount(2) { #expect(loop.contains(mailbox.source)) }
        for item in 0..<1000 { mailbox.put(item) }
        await seen.waitUntilCount(1000)
        mailbox.source.invalidate()
        for thread in threads { #expect(try await thread.join() == .finished) }
        #expect(seen.value == 1000)
    }

    @Test("S14: a storm of ring() calls from 8 threads loses no item", arguments: Sleep.allCases)
    func storm(breaksSleep sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep) { loop in
            let (threads, items) = (8, rounds(10_000))
            let seen = LoopBound(0)
            let boxes = (0..<3).map { _ in
                Mailbox { _ in
                    seen.value += 1
                    if seen.value == threads * items { loop.stop() }
                }
            }
            for mailbox in boxes { loop.add(mailbox.source) }
            let sleeps = SleepObserver(loop)
            let senders = (0..<threads).map { number in
                runOnThread {
                    sleeps.wait()
                    for item in 0..<items { boxes[(number + item) % 3].put(item) }
                }
            }
            #expect(loop.runGuarded() == .stopped)
            #expect(seen.value == threads * items)
            for sender in senders { try sender.join() }
        }
    }

    @Test("a check that signals its own source keeps no run from its limit, its timers or a stop")
    func selfRinging() async throws {
        try await onLoop { loop in
            let holder = LoopBound<RunLoopSource?>(nil)
            let source = RunLoopSource(readiness: {
                holder.value?.ring()
                return false
            }) { Issue.record("performed") }
            holder.value = source
            loop.add(source)
            #expect(loop.run(for: .milliseconds(5)) == .timedOut)
            #expect(loop.run(for: .zero) == .timedOut)
            loop.add(RunLoopTimer(after: .milliseconds(1)) { _ in loop.stop() })
            #expect(loop.runGuarded() == .stopped)
            source.invalidate()
            holder.value = nil
        }
    }

    @Test("a check that runs the loop leaves the run below able to sleep")
    func nestingCheck() async throws {
        try await onLoop { loop in
            let nested = LoopBound(0)
            let inner = RunLoopSource {}
            loop.add(inner, to: "inner")
            let source = RunLoopSource(readiness: {
                nested.value += 1
                loop.run(mode: "inner", for: .zero)
                return false
            }) { Issue.record("performed") }
            loop.add(source)
            #expect(loop.run(for: .milliseconds(20)) == .timedOut)
            #expect(nested.value >= 1)
            #expect(loop.passCount < 20 && loop.kernelWaitCount < 20)
        }
    }

    @Test("10,000 idle sources cost a pass nothing: none of them is checked")
    func idleSources() async throws {
        try await onLoop { loop in
            let asked = Counter("questions")
            for _ in 0..<10_000 {
                loop.add(RunLoopSource(readiness: { asked.increment() < 0 }) {})
            }
            let mailbox = Mailbox { _ in }
            loop.add(mailbox.source)
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(asked.value == 10_000)
            for item in 0..<100 {
                mailbox.put(item)
                #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .handledSource)
            }
            #expect(asked.value == 10_000)
            #expect(loop.kernelWaitCount == 0)
        }
    }
}
