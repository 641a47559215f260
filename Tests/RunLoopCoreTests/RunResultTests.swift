// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// S2: the four ways to run a loop, and the four results of a run.
@Suite(.leakCheck) struct RunResultTests {
    /// The two ways to run a mode with a limit.
    enum Limit: CaseIterable {
        case duration, date

        func run(
            _ loop: ThreadRunLoop, mode: RunLoopMode = .default, for limit: Duration,
            returnAfterSourceHandled: Bool = false
        ) -> RunLoopRunResult {
            switch self {
            case .duration: loop.run(mode: mode, for: limit, returnAfterSourceHandled: returnAfterSourceHandled)
            case .date:
                loop.run(
                    mode: mode, until: limit <= .zero ? .distantPast : .after(limit),
                    returnAfterSourceHandled: returnAfterSourceHandled)
            }
        }
    }

    private static let long = Duration.seconds(600)

    @Test("S2: run() finishes at once when there is nothing to wait for")
    func unconditionallyFinished() async throws {
        try await onLoop { loop in
            #expect(loop.run() == .finished)
            #expect(loop.passCount == 0)
        }
    }

    @Test("S2: run() goes on after handled sources, and finishes when the last item has gone")
    func unconditionallyUntilEmpty() async throws {
        try await onLoop { loop in
            let performed = Counter("performs")
            let left = Recorder<RunLoopSource>()
            let source = RunLoopSource {
                guard let source = left.elements.first else { return }
                if performed.increment() == 3 { source.invalidate() } else { source.signal() }
            }
            left.append(source)
            loop.add(source)
            source.signal()
            #expect(loop.run() == .finished)
            #expect(performed.value == 3)
            _ = left.takeAll()  // which the source holds
        }
    }

    @Test("S2: run() is stopped by stop()")
    func unconditionallyStopped() async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform { loop.stop() }
            #expect(loop.run() == .stopped)
        }
    }

    @Test("S2: run(until:) runs the default mode until the date, and not shorter")
    func untilDate() async throws {
        try await onLoop { loop in
            let modes = Recorder<RunLoopMode?>()
            loop.add(idleSource())
            loop.add(RunLoopObserver(activities: .entry) { _, _ in modes.append(loop.currentMode) })
            let date = MonotonicInstant.after(.milliseconds(5))
            #expect(loop.run(until: date) == .timedOut)
            #expect(MonotonicInstant.now >= date)
            #expect(modes.elements == [.default])
        }
    }

    @Test("S2: a run with a limit finishes when its mode is or becomes empty", arguments: Limit.allCases)
    func finished(_ limit: Limit) async throws {
        try await onLoop { loop in
            #expect(limit.run(loop, for: Self.long) == .finished)
            #expect(limit.run(loop, mode: "unknown", for: Self.long) == .finished)
            loop.add(idleSource())
            loop.add(RunLoopTimer(fireDate: .now) { _ in }, to: "other")
            #expect(limit.run(loop, mode: "other", for: Self.long) == .finished)
        }
    }

    @Test("S2: a run with a limit is stopped by stop()", arguments: Limit.allCases)
    func stopped(_ limit: Limit) async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform { loop.stop() }
            #expect(limit.run(loop, for: Self.long) == .stopped)
        }
    }

    @Test("S2: a run times out at its limit, and not before", arguments: Limit.allCases, [false, true])
    func timedOut(_ limit: Limit, returnAfterSourceHandled: Bool) async throws {
        try await onLoop { loop in
            loop.add(idleSource(), to: "other")
            let start = MonotonicInstant.now
            let result = limit.run(
                loop, mode: "other", for: .milliseconds(5), returnAfterSourceHandled: returnAfterSourceHandled)
            #expect(result == .timedOut)
            #expect(start.duration(to: .now) >= .milliseconds(5))
            #expect(limit.run(loop, mode: "other", for: .zero) == .timedOut)
        }
    }

    @Test(
        "S2: a run asked to returns after a handled source, of either version", arguments: Limit.allCases)
    func handledSource(_ limit: Limit) async throws {
        try await onLoop { loop in
            let performed = Recorder<String>()
            let source = RunLoopSource { performed.append("custom") }
            let mailbox = Mailbox { _ in performed.append("port-based") }
            loop.add(source)
            loop.add(mailbox.source)
            source.signal()
            #expect(limit.run(loop, for: Self.long, returnAfterSourceHandled: true) == .handledSource)
            mailbox.put(1)
            #expect(limit.run(loop, for: Self.long, returnAfterSourceHandled: true) == .handledSource)
            #expect(performed.elements == ["custom", "port-based"])
        }
    }

    @Test("S2: a run not asked to return goes on after a handled source", arguments: Limit.allCases)
    func goesOn(_ limit: Limit) async throws {
        try await onLoop { loop in
            let handled = Counter("handled items")
            let mailbox = Mailbox { _ in if handled.increment() == 3 { loop.stop() } }
            loop.add(mailbox.source)
            for item in 1...3 { mailbox.put(item) }
            #expect(limit.run(loop, for: Self.long) == .stopped)
            #expect(handled.value == 3)
            #expect(loop.passCount == 3)
        }
    }

    @Test("a block and a timer are no handled source", arguments: Limit.allCases)
    func noSource(_ limit: Limit) async throws {
        try await onLoop { loop in
            loop.add(idleSource())
            loop.perform {}
            loop.add(
                RunLoopTimer(fireDate: .now) { _ in
                    loop.perform { loop.stop() }
                })
            #expect(limit.run(loop, for: Self.long, returnAfterSourceHandled: true) == .stopped)
        }
    }

    @Test(
        "of several reasons the first counts: stopped, handled source, timed out, finished", arguments: Limit.allCases)
    func precedence(_ limit: Limit) async throws {
        try await onLoop { loop in
            // In each of the runs the one source is performed, and leaves the mode empty.
            func run(stops: Bool, for duration: Duration, returns: Bool) -> RunLoopRunResult {
                addLeavingSource(to: loop, stops: stops)
                return limit.run(loop, for: duration, returnAfterSourceHandled: returns)
            }
            #expect(run(stops: true, for: .zero, returns: true) == .stopped)
            #expect(run(stops: false, for: .zero, returns: true) == .handledSource)
            #expect(run(stops: false, for: .zero, returns: false) == .timedOut)
            #expect(run(stops: false, for: Self.long, returns: false) == .finished)
        }
    }

    /// Adds a signalled source that removes itself when it is performed.
    private func addLeavingSource(to loop: ThreadRunLoop, stops: Bool) {
        let itself = Recorder<RunLoopSource>()
        let source = RunLoopSource {
            if stops { loop.stop() }
            itself.takeAll().first?.invalidate()
        }
        itself.append(source)
        loop.add(source)
        source.signal()
    }
}
