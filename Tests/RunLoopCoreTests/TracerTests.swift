// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct TracerTests {
    @Test("S25: the trace of a repeating timer has the documents' lines in their order")
    func timer() async throws {
        // What the document prints from one tick to the next, three times. The first pass comes before the first tick.
        let words = [
            "被唤醒": "afterWaiting (64)", "timer tick": "timer \"timer tick\"", "即将处理Timer事件": "beforeTimers (2)",
            "即将处理Source事件": "beforeSources (4)", "即将休眠": "beforeWaiting (32)",
        ]
        let printed = Array(
            repeating: ["被唤醒", "timer tick", "即将处理Timer事件", "即将处理Source事件", "即将休眠"], count: 3
        ).joined()
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            let ticks = Counter("ticks")
            tracer.attach(to: loop)
            loop.add(
                RunLoopTimer(name: "timer tick", after: .milliseconds(1), interval: .milliseconds(1)) { _ in
                    if ticks.increment() == 4 { loop.stop() }
                })
            loop.runGuarded()
        }
        let lines = tracer.activityTrace.split(separator: "\n").map { line in
            line.split(separator: "] ")[1].split(separator: " #")[0]
        }
        let first = ["entry (1)", "beforeTimers (2)", "beforeSources (4)", "beforeWaiting (32)"]
        let last = ["afterWaiting (64)", "timer \"timer tick\"", "exit (128)"]
        #expect(lines.map(String.init) == first + printed.compactMap { words[$0] } + last)
        #expect(tracer.activityTrace.contains(" [\(sysProcessID()):"))
    }

    @Test("every kind of callout is recorded with its name, begin and end")
    func callouts() async throws {
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            tracer.attach(to: loop)
            loop.add(RunLoopObserver(name: "o", activities: .entry) { _, _ in })
            loop.add(RunLoopTimer(name: "t", fireDate: .distantPast) { _ in })
            loop.perform(name: "b") {}
            let source = RunLoopSource(name: "c") {}
            loop.add(source)
            source.signal()
            loop.run(for: .zero)
            let checked = RunLoopSource(name: "p", readiness: { true }, perform: {})
            loop.add(checked, to: "other")
            loop.run(mode: "other", for: .zero)
        }
        let kinds: [RunLoopCallout.Kind] = [.observer, .block, .customSource, .timer, .portSource]
        let begun = tracer.events.compactMap(\.begunCallout)
        #expect(begun.map(\.kind) == kinds && begun.map(\.name) == ["o", "b", "c", "t", "p"])
        #expect(tracer.events.compactMap(\.endedCallout) == begun)
        #expect(tracer.events.last?.mode == "other")
        expectWellFormed(tracer.events)
    }

    @Test("a wait records what ended it, and whether the loop was idle meanwhile")
    func waits() async throws {
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            loop.add(idleSource())
            tracer.attach(to: loop)
            loop.run(for: .zero)
            loop.run(for: .milliseconds(20))
            loop.add(RunLoopTimer(fireDate: .distantPast) { _ in loop.stop() })
            loop.runGuarded()
            let mailbox = Mailbox { _ in loop.stop() }
            loop.add(mailbox.source)
            mailbox.put(1)
            loop.runGuarded()
            let waker = RunLoopObserver(activities: .beforeWaiting, repeats: false) { _, _ in loop.wakeUp() }
            loop.add(waker)
            // A loop that is about to sleep is woken by what comes then.
            loop.add(IdleHook { loop.perform { loop.stop() } })
            loop.runGuarded()
        }
        let ends = tracer.events.compactMap(\.waitEnd)
        #expect(ends.map(\.cause) == [.nothing, .limit, .timers, .source, .wakeUp, .wakeUp])
        #expect(ends[0].slept == false && ends[2].slept == false && ends[3].slept == false && ends[4].slept == false)
        #expect(ends[5].slept == true)
    }

    @Test("a tracer without room keeps the newest events, and they are well-formed")
    func capacity() async throws {
        let tracer = RunLoopTracer(capacity: 32)
        try await onLoop { loop in
            tracer.attach(to: loop)
            for number in 0..<100 { loop.perform(name: "block \(number)") {} }
            loop.add(idleSource())
            loop.run(for: .zero)
        }
        #expect(tracer.droppedCount > 170)
        let names = tracer.events.compactMap { $0.begunCallout?.name }
        #expect(names.last == "block 99" && !names.contains("block 50"))
        expectWellFormed(tracer.events)
    }

    @Test("a tracer that is attached and detached inside of callouts yields a well-formed trace")
    func middle() async throws {
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform(name: "attaching") { tracer.attach(to: loop) }
            loop.perform(name: "seen") {}
            loop.perform(name: "detaching") {
                tracer.detach(from: loop)
                tracer.detach(from: loop)
            }
            loop.perform(name: "unseen") {}
            loop.perform(name: "attaching again") {
                tracer.attach(to: loop)
                tracer.attach(to: loop)
            }
            loop.perform(name: "seen again") {}
            loop.run(for: .zero)
        }
        let events = tracer.events
        expectWellFormed(events)
        #expect(events.compactMap { $0.begunCallout?.name } == ["seen", "detaching", "seen again"])
        #expect(events.filter { $0.kind == .activity(.exit) }.count == 1)
    }

    @Test("a trace of several loops is in the order of time, and each thread's events nest")
    func several() async throws {
        let tracer = RunLoopTracer()
        for _ in 0..<2 {
            try await onLoop { loop in
                tracer.attach(to: loop)
                loop.perform { loop.perform {} }
                loop.run(for: .zero)
            }
        }
        let events = tracer.events
        #expect(events.map(\.time) == events.map(\.time).sorted())
        #expect(events.compactMap(\.begunCallout).count == 4)
        expectWellFormed(events)
    }

    @Test("a loop that no tracer is attached to reports nothing")
    func off() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform {}
            loop.run(for: .zero)
            #expect(loop.spanCount == 0)
            do {
                let tracer = RunLoopTracer()
                tracer.attach(to: loop)
                loop.perform {}
                loop.run(for: .zero)
                #expect(loop.spanCount == 3, "a run, a wait and a block")
            }
            #expect(!loop.hasInstruments, "a tracer that is released detaches itself")
            loop.perform {}
            loop.run(for: .zero)
            #expect(loop.spanCount == 3)
        }
    }

    @Test("attaching to a loop that has ended records nothing")
    func ended() async throws {
        let tracer = RunLoopTracer()
        let loop = try await onLoop { $0 }
        tracer.attach(to: loop)
        tracer.detach(from: loop)
        #expect(tracer.events.isEmpty && !loop.hasInstruments)
    }

    @Test("S14: attach, detach and read from other threads while a loop runs nested")
    func storm() async throws {
        let tracer = RunLoopTracer(capacity: 300)
        let other = RunLoopTracer(capacity: 7)
        try await onLoop { loop in
            loop.add(idleSource(), to: "inner")
            loop.add(
                RunLoopTimer(fireDate: .now, interval: .microseconds(50)) { _ in loop.run(mode: "inner", for: .zero) })
            other.attach(to: loop)
            let threads = (0..<3).map { number in
                runOnThread {
                    for round in 0..<100 {
                        tracer.attach(to: loop)
                        loop.perform(name: "\(number) \(round)") {}
                        expectWellFormed(tracer.events)
                        if round % 3 == number { tracer.detach(from: loop) }
                        expectWellFormed(other.events)
                    }
                }
            }
            let joining = runOnThread {
                for thread in threads { try thread.join() }
                loop.perform { loop.stop() }  // in the default mode, so that no nested run uses it up
            }
            loop.runGuarded()
            try joining.join()
        }
    }
}

/// Calls a closure each time at which a loop has nothing to do.
final class IdleHook: RunLoopInstrument {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    func note(_ event: RunLoopTraceEvent) {}
    func loopFallsIdle(at time: MonotonicInstant) { body() }
    func loopDidEnd() {}
}

extension ThreadRunLoop {
    /// How often an instrument was notified of a begin.
    var spanCount: UInt64 { lastSpan.load(ordering: .relaxed) }
    var hasInstruments: Bool { isInstrumented.load(ordering: .relaxed) }
}

extension RunLoopTraceEvent {
    var begunCallout: RunLoopCallout? {
        if case .calloutBegin(let callout) = kind { callout } else { nil }
    }

    var endedCallout: RunLoopCallout? {
        if case .calloutEnd(let callout) = kind { callout } else { nil }
    }

    var waitEnd: (cause: WaitCause?, slept: Bool)? {
        if case .waitEnd(let cause, let slept) = kind { (cause, slept) } else { nil }
    }
}

/// Checks that begins and ends of each thread nest and that time does not run backwards.
func expectWellFormed(_ events: [RunLoopTraceEvent], sourceLocation: SourceLocation = #_sourceLocation) {
    for (_, events) in Dictionary(grouping: events, by: \.threadID) {
        var open: [UInt64] = []
        for event in events {
            switch event.kind {
            case .activity: break
            case .runBegin, .calloutBegin, .waitBegin: open.append(event.span)
            case .runEnd, .calloutEnd, .waitEnd: #expect(open.popLast() == event.span, sourceLocation: sourceLocation)
            }
        }
        #expect(open.isEmpty, sourceLocation: sourceLocation)
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time }, sourceLocation: sourceLocation)
    }
}

@Suite(.leakCheck) struct InstrumentTests {
    private final class Depths: RunLoopInstrument {
        let ends = Recorder<Int>()

        func note(_ event: RunLoopTraceEvent) {
            if case .runEnd = event.kind { ends.append(event.depth) }
        }

        func loopFallsIdle(at time: MonotonicInstant) {}
        func loopDidEnd() {}
    }

    @Test(
        "an instrument added during a run is notified of the run's end, so that it knows the time outside of runs")
    func lateInstrument() async throws {
        let depths = Depths()
        try await onLoop { loop in
            loop.perform {
                loop.add(depths)
                loop.add(idleSource())
                loop.run(for: .zero)
            }
            loop.run(for: .zero)
            loop.remove(depths)
        }
        #expect(depths.ends.elements == [2, 1])
    }
}
