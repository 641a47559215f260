// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct CommonModeTests {
    @Test("S3: what is added to the common modes is in each of them, also in those that become common later")
    func items() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.addCommonMode("early")
            let source = RunLoopSource(
                schedule: { _, mode in trace.append("schedule \(mode)") },
                cancel: { _, mode in trace.append("cancel \(mode)") },
                perform: { trace.append("perform") })
            let timer = RunLoopTimer(fireDate: .distantFuture) { _ in trace.append("timer") }
            let observer = RunLoopObserver(activities: .entry) { _, _ in trace.append("entry") }
            loop.add(source, to: .common)
            loop.add(timer, to: .common)
            loop.add(observer, to: .common)
            #expect(Set(trace.takeAll()) == ["schedule default", "schedule early"])
            source.signal()
            loop.addCommonMode("late")
            #expect(trace.takeAll() == ["schedule late"])
            for mode in [RunLoopMode.default, "early", "late", .common] {
                #expect(loop.contains(source, in: mode) && loop.contains(timer, in: mode))
                #expect(loop.contains(observer, in: mode))
            }
            timer.setNextFireDate(.distantPast)
            loop.run(mode: "late", for: .zero)
            #expect(trace.takeAll() == ["entry", "perform", "timer"])
            source.invalidate()
            #expect(Set(trace.elements) == ["cancel default", "cancel early", "cancel late"])
        }
    }

    @Test("removal from the common modes leaves an item in the mode to which it was added by itself")
    func addedSeparately() async throws {
        try await onLoop { loop in
            loop.addCommonMode("other")
            let timer = RunLoopTimer(fireDate: .distantFuture) { _ in }
            loop.add(timer)
            loop.add(timer, to: .common)
            loop.remove(timer, from: .common)
            #expect(loop.contains(timer) && !loop.contains(timer, in: "other") && !loop.contains(timer, in: .common))
            loop.add(timer, to: .common)
            loop.remove(timer, from: "other")
            #expect(!loop.contains(timer, in: "other") && loop.contains(timer, in: .common))
            loop.remove(timer)
            #expect(!loop.contains(timer))
            loop.addCommonMode("later")
            #expect(loop.contains(timer, in: "later"))
        }
    }

    @Test("making a mode common that is, or the pseudo mode, changes nothing, and makes no mode by itself")
    func nothing() async throws {
        try await onLoop { loop in
            loop.addCommonMode(.default)
            loop.addCommonMode(.common)
            loop.addCommonMode("new")
            #expect(loop.allModes == [.default])
        }
    }

    @Test("a common item added from another thread is served by a loop that sleeps in a common mode")
    func fromElsewhere() async throws {
        try await onLoop { loop in
            loop.addCommonMode("inner")
            loop.add(idleSource(), to: "inner")
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() }, to: .common)
            let adder = runOnThread {
                asleep.wait()
                loop.add(RunLoopTimer(fireDate: .now) { _ in loop.stop() }, to: .common)
            }
            #expect(loop.runGuarded(mode: "inner") == .stopped)
            try adder.join()
        }
    }
}
