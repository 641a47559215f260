// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct CustomSourceTests {
    @Test("S4: a source is notified of each mode that it enters and leaves, and is performed after a signal")
    func routines() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = RunLoopSource(
                schedule: { trace.append("schedule \($0 == loop) \($1)") },
                cancel: { trace.append("cancel \($0 == loop) \($1)") },
                perform: { trace.append("perform") })
            loop.add(source)
            loop.add(source)
            loop.add(source, to: "a")
            #expect(loop.contains(source) && loop.contains(source, in: "a") && !loop.contains(source, in: .common))
            source.signal()
            source.signal()
            #expect(source.isSignalled)
            loop.run(for: .zero)
            #expect(!source.isSignalled)
            loop.remove(source)
            loop.remove(source)
            source.invalidate()
            source.invalidate()
            #expect(!source.isValid && !loop.contains(source, in: "a"))
            loop.add(source)
            #expect(!loop.contains(source))
        }
        #expect(
            trace.elements == [
                "schedule true default", "schedule true a", "perform", "cancel true default", "cancel true a",
            ])
    }

    @Test("sources run by order, equal ones by the time of their first signal")
    func order() async throws {
        let trace = Recorder<Int>()
        try await onLoop { loop in
            let sources = (0..<6).map { number in
                RunLoopSource(order: number == 3 ? -1 : 0) { trace.append(number) }
            }
            for source in sources { loop.add(source) }
            for number in [4, 1, 5, 0, 3, 2, 4] { sources[number].signal() }
            loop.run(for: .zero)
        }
        #expect(trace.elements == [3, 4, 1, 5, 0, 2])
    }

    @Test("a run that returns after one source leaves the others signalled")
    func onlyOne() async throws {
        let trace = Recorder<Int>()
        try await onLoop { loop in
            let sources = (0..<3).map { number in RunLoopSource { trace.append(number) } }
            for source in sources {
                loop.add(source)
                source.signal()
            }
            #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .handledSource)
            #expect(trace.takeAll() == [0])
            #expect(sources.map(\.isSignalled) == [false, true, true])
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(trace.elements == [1, 2])
        }
    }

    @Test("a signal that came before the source was added counts")
    func early() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = RunLoopSource { trace.append("perform") }
            source.signal()
            loop.add(source)
            loop.run(for: .zero)
            loop.run(for: .zero)
        }
        #expect(trace.elements == ["perform"])
    }

    @Test("a source that is in two modes is performed once per signal, in the mode that runs first")
    func twoModes() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = RunLoopSource { trace.append(loop.currentMode?.description ?? "none") }
            loop.add(source, to: "a")
            loop.add(source, to: "b")
            source.signal()
            loop.run(mode: "b", for: .zero)
            loop.run(mode: "a", for: .zero)
        }
        #expect(trace.elements == ["b"])
    }

    @Test("a source that was performed in one mode does not count as signalled in another")
    func staleMark() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = RunLoopSource { trace.append("source") }
            for mode in [.default, "a"] as [RunLoopMode] { loop.add(source, to: mode) }
            source.signal()
            loop.run(for: .zero)
            let first = RunLoopSource(order: -1) {
                trace.append("first")
                source.signal()
            }
            loop.add(first, to: "a")
            first.signal()
            loop.add(RunLoopObserver(activities: .exit) { _, _ in trace.append("exit") }, to: "a")
            for _ in 0..<2 { loop.run(mode: "a", for: .zero) }
        }
        #expect(trace.elements == ["source", "first", "exit", "source", "exit"])
    }

    @Test("S4: a signal from another thread wakes the loop by itself", arguments: Sleep.allCases)
    func wakes(from sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep) { loop in
            let source = RunLoopSource { loop.stop() }
            loop.add(source)
            let sleeps = SleepObserver(loop)
            let signaller = runOnThread {
                sleeps.wait()
                source.signal()
            }
            #expect(loop.runGuarded() == .stopped)
            try signaller.join()
        }
    }

    @Test("a source that signals itself runs again in the next pass, and one that it invalidates does not run")
    func inside() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let victim = RunLoopSource(order: 2) { trace.append("victim") }
            let again = LoopBound<RunLoopSource?>(nil)
            let source = RunLoopSource(order: 1) {
                trace.append("source")
                victim.invalidate()
                if trace.count < 4 { again.value?.signal() } else { loop.stop() }
            }
            again.value = source
            loop.add(RunLoopObserver(activities: .beforeTimers) { _, _ in trace.append("pass") })
            for each in [victim, source] {
                loop.add(each)
                each.signal()
            }
            #expect(loop.runGuarded() == .stopped)
            again.value = nil
        }
        #expect(trace.elements == ["pass", "source", "pass", "source"])
    }
}
