// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct StopTests {
    @Test("S13: a stop before the run ends the next run, once")
    func beforeRun() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.record(trace)
            loop.stop()
            loop.stop()
            #expect(loop.runGuarded() == .stopped)
            #expect(loop.run(for: .zero) == .timedOut)
        }
        #expect(trace.elements.prefix(2) == ["entry", "exit"])
    }

    @Test("S13: a stop in the same pass as a handled source and an elapsed limit is the result, and consumed")
    func precedence() async throws {
        try await onLoop { loop in
            let source = RunLoopSource { loop.stop() }
            loop.add(source)
            source.signal()
            #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .stopped)
            #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .timedOut)
            source.signal()
            loop.perform { source.invalidate() }
            loop.stop()
            #expect(loop.runGuarded() == .stopped)
        }
    }

    @Test("a stop ends a run in an empty mode too, and is not consumed by the pseudo mode")
    func emptyMode() async throws {
        try await onLoop { loop in
            loop.stop()
            #expect(loop.run(mode: .common, for: .zero) == .finished)
            #expect(loop.run(mode: "nothing", for: .zero) == .stopped)
            #expect(loop.run(mode: "nothing", for: .zero) == .finished)
        }
    }

    @Test("S12, S13: a stop ends the innermost run only")
    func nested() async throws {
        let results = Recorder<RunLoopRunResult>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(idleSource(), to: "inner")
            loop.perform {
                loop.perform(in: ["inner"]) {
                    loop.stop()
                    loop.stop()
                }
                results.append(loop.runGuarded(mode: "inner"))
                #expect(loop.currentMode == .default)
            }
            results.append(loop.run(for: .milliseconds(1)))
            #expect(loop.currentMode == nil)
        }
        #expect(results.elements == [.stopped, .timedOut])
    }

    @Test("S12: a stop is for the run that was stopped, not for one nested in it after that")
    func outer() async throws {
        let results = Recorder<RunLoopRunResult>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(idleSource(), to: "inner")
            loop.perform {
                loop.stop()
                results.append(loop.run(mode: "inner", for: .zero))
                results.append(loop.run(mode: "empty", for: .zero))
            }
            results.append(loop.runGuarded())
        }
        #expect(results.elements == [.timedOut, .finished, .stopped])
    }

    @Test("a stop that its run did not use goes to the run below")
    func handedDown() async throws {
        let results = Recorder<RunLoopRunResult>()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.add(idleSource(), to: "inner")
            loop.add(RunLoopObserver(activities: .exit) { _, _ in loop.stop() }, to: "inner")
            loop.perform { results.append(loop.run(mode: "inner", for: .zero)) }
            results.append(loop.runGuarded())
            results.append(loop.run(mode: "inner", for: .zero))
            results.append(loop.run(for: .zero))
            results.append(loop.run(for: .zero))
        }
        #expect(results.elements == [.timedOut, .stopped, .timedOut, .stopped, .timedOut])
    }

    @Test("S13: a stop from another thread ends a sleep", arguments: Sleep.allCases)
    func fromElsewhere(sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep) { loop in
            loop.add(idleSource())
            let sleeps = SleepObserver(loop)
            let stopper = runOnThread {
                sleeps.wait()
                loop.stop()
            }
            #expect(loop.runGuarded() == .stopped)
            try stopper.join()
        }
    }

    @Test("S13: a run ends when its last item goes, from a handler or from another thread")
    func lastItem() async throws {
        try await onLoop { loop in
            let own = RunLoopSource(readiness: { true }) { [weak loop] in loop?.stop() }
            let timer = RunLoopTimer(after: .zero, interval: .milliseconds(1)) { $0.invalidate() }
            loop.add(timer)
            #expect(loop.runGuarded() == .finished)
            own.invalidate()
            let other = idleSource()
            loop.add(other)
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let remover = runOnThread {
                asleep.wait()
                loop.remove(other)
            }
            #expect(loop.runGuarded() == .finished)
            try remover.join()
        }
    }

    @Test("S16: the skeleton thread runs a while at a time and leaves on stopped or finished")
    func skeleton() async throws {
        try await onLoop { loop in
            let source = idleSource()
            loop.add(source)
            let runs = Counter("runs")
            let stopper = runOnThread {
                runs.waitUntilCount(3)
                loop.stop()
            }
            var result = RunLoopRunResult.timedOut
            repeat {
                result = loop.run(for: .milliseconds(1), returnAfterSourceHandled: true)
                runs.increment()
            } while result != .stopped && result != .finished
            #expect(result == .stopped)
            try stopper.join()
            source.invalidate()
            #expect(loop.run(for: .seconds(10)) == .finished)
        }
    }

    @Test("S3: an empty or unknown mode finishes at once without an observer, as does the pseudo mode")
    func emptyModes() async throws {
        try await onLoop { loop in
            let trace = Recorder<String>()
            loop.record(trace)
            loop.record(trace, in: "other")
            for mode in [RunLoopMode.default, "other", "unknown", .common] {
                #expect(loop.run(mode: mode, until: .distantFuture) == .finished)
            }
            loop.run()
            #expect(trace.elements.isEmpty)
            #expect(loop.allModes == [.default, "other"])
        }
    }
}
