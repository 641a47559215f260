// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// How a request is made.
enum RequestKind: CaseIterable {
    case posted, delayed

    @discardableResult
    func perform(
        on loop: ThreadRunLoop, in modes: [RunLoopMode] = [.default], for target: (any AnyObject & Sendable)? = nil,
        _ body: @escaping @Sendable () -> Void
    ) -> PerformRequest {
        switch self {
        case .posted: loop.perform(in: modes, for: target, body)
        case .delayed: loop.perform(after: .zero, in: modes, for: target, body)
        }
    }
}

@Suite(.leakCheck) struct PerformRequestTests {
    @Test("S11: delayed requests are called once, by time, equal ones in the order in which they were made")
    func delays() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            // So far apart that it does not matter how long the thread is blocked between two of them.
            loop.perform(after: .milliseconds(1)) { seen.append(4) }
            loop.perform(after: .seconds(-60)) { seen.append(2) }
            loop.perform(after: .seconds(-60)) { seen.append(3) }
            loop.perform(after: .seconds(-120)) { seen.append(1) }
            loop.perform(after: .seconds(-180)) { seen.append(0) }
            #expect(loop.nextTimerFireDate() != nil)
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == [0, 1, 2, 3, 4])
    }

    @Test("S11: a delayed request is not called before its time, and waits for a run in one of its modes")
    func notBefore() async throws {
        let dates = Recorder<MonotonicInstant>()
        let start = MonotonicInstant.now
        try await onLoop { loop in
            let request = loop.perform(after: .milliseconds(2), in: ["a"]) { dates.append(.now) }
            loop.add(idleSource())
            #expect(loop.run(for: .milliseconds(3)) == .timedOut)
            #expect(request.isPending)
            #expect(loop.runGuarded(mode: "a") == .finished)
            #expect(!request.isPending)
        }
        #expect(start.duration(to: dates.elements[0]) >= .milliseconds(2))
    }

    @Test("S11: a request in several modes is called once, in the first that runs", arguments: RequestKind.allCases)
    func severalModes(_ kind: RequestKind) async throws {
        let seen = Recorder<RunLoopMode?>()
        try await onLoop { loop in
            kind.perform(on: loop, in: ["a", "b", .common]) { seen.append(loop.currentMode) }
            #expect(loop.runGuarded(mode: "b") == .finished)
            #expect(loop.runGuarded(mode: "a") == .finished)
            #expect(loop.runGuarded() == .finished)
            kind.perform(on: loop, in: [.common]) { seen.append(loop.currentMode) }
            loop.add(RunLoopObserver(activities: .all) { _, _ in }, to: "later")
            loop.addCommonMode("later")
            #expect(loop.runGuarded(mode: "later") == .finished)
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == ["b", "later"])
    }

    @Test("S11: one request is cancelled, and the mode is empty without it", arguments: RequestKind.allCases)
    func cancelOne(_ kind: RequestKind) async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            loop.record(trace)
            let request = kind.perform(on: loop) { Issue.record("a cancelled request was called") }
            #expect(request.isPending)
            #expect(request.cancel())
            #expect(!request.isPending)
            #expect(request.cancel())
            #expect(loop.runGuarded() == .finished)
            #expect(loop.nextTimerFireDate() == nil)
            #expect(trace.elements.isEmpty)
        }
    }

    @Test("S11: a request cannot be cancelled once its call has started", arguments: RequestKind.allCases)
    func cancelInside(_ kind: RequestKind) async throws {
        try await onLoop { loop in
            let calls = Counter("calls")
            let own = LoopBound<PerformRequest?>(nil)
            own.value = kind.perform(on: loop) {
                #expect(own.value?.isPending == false)
                #expect(own.value?.cancel() == false)
                calls.increment()
            }
            #expect(loop.runGuarded() == .finished)
            #expect(own.value?.cancel() == false)
            #expect(calls.value == 1)
            own.value = nil
        }
    }

    @Test("S11: all requests for a target are cancelled, and no others")
    func cancelAll() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let (first, second) = (LifeProbe(Counter("one")), LifeProbe(Counter("two")))
            for kind in RequestKind.allCases {
                kind.perform(on: loop, for: first) { seen.append("first \(kind)") }
                kind.perform(on: loop, in: ["other", .common], for: first) { seen.append("first \(kind)") }
                kind.perform(on: loop, for: second) { seen.append("second \(kind)") }
                kind.perform(on: loop) { seen.append("untargeted \(kind)") }
            }
            #expect(loop.cancelPerformRequests(for: first) == 4)
            #expect(loop.cancelPerformRequests(for: first) == 0)
            #expect(loop.run(mode: "other", for: .zero) == .finished)
            #expect(loop.runGuarded() == .finished)
            #expect(loop.cancelPerformRequests(for: second) == 0)
        }
        #expect(seen.elements == ["second posted", "untargeted posted", "second delayed", "untargeted delayed"])
    }

    @Test("S11: a body cancels the others of its target, also those of the same pass", arguments: RequestKind.allCases)
    func cancelAllInside(_ kind: RequestKind) async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            let target = LifeProbe(Counter("targets"))
            for number in 0..<5 {
                kind.perform(on: loop, for: target) {
                    seen.append(number)
                    if number == 1 { #expect(loop.cancelPerformRequests(for: target) == 3) }
                }
            }
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == [0, 1])
    }

    @Test("S11: a request cancelled on another thread lets a sleeping run finish")
    func cancelElsewhere() async throws {
        try await onLoop { loop in
            let request = loop.perform(after: .seconds(Int64.max)) { Issue.record("never came") }
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let canceller = runOnThread {
                asleep.wait()
                #expect(request.cancel())
            }
            #expect(loop.runGuarded() == .finished)
            try canceller.join()
        }
    }

    @Test("S11: requests are over when the thread ends, and on a loop that has ended", arguments: RequestKind.allCases)
    func threadEnds(_ kind: RequestKind) async throws {
        let released = Counter("released objects")
        let (loop, early) = try await onLoop { loop in
            let (target, held) = (LifeProbe(released), LifeProbe(released))
            let early = kind.perform(on: loop, for: target) {
                _ = held
                Issue.record("an ended loop has called something")
            }
            #expect(early.isPending)
            return (loop, early)
        }
        #expect(released.value == 2)
        #expect(!early.isPending && early.cancel())
        let late = kind.perform(on: loop, for: LifeProbe(released)) { Issue.record("called") }
        #expect(!late.isPending && late.cancel())
        #expect(released.value == 3)
        #expect(loop.cancelPerformRequests(for: early) == 0)
    }

    @Test(
        "the target and what the body holds are retained until the call, and released by it",
        arguments: RequestKind.allCases)
    func releasedByCall(_ kind: RequestKind) async throws {
        let released = Counter("released objects")
        try await onLoop { loop in
            weak var target: LifeProbe?
            let request: PerformRequest
            do {
                let (made, held) = (LifeProbe(released), LifeProbe(released))
                target = made
                request = kind.perform(on: loop, for: made) {
                    _ = held
                    #expect(released.value == 0)
                }
            }
            #expect(target != nil)
            let after = kind.perform(on: loop) { #expect(released.value == 2) }
            #expect(loop.runGuarded() == .finished)
            #expect(target == nil && !request.isPending && !after.isPending)
        }
    }

    @Test("the target and what the body holds are released by the cancellation", arguments: RequestKind.allCases)
    func releasedByCancel(_ kind: RequestKind) async throws {
        let released = Counter("released objects")
        try await onLoop { loop in
            let one = hold(released, kind, loop)
            #expect(one.cancel() && released.value == 2)
            let target = LifeProbe(released)
            hold(released, kind, loop, target)
            #expect(released.value == 2)
            #expect(loop.cancelPerformRequests(for: target) == 1 && released.value == 3)
        }
        #expect(released.value == 4)
    }

    @Test("S11, S12: a nested run in a delayed body calls the other requests, and not that one again")
    func nested() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            loop.perform(after: .zero) {
                seen.append(1)
                #expect(loop.run(mode: .default, until: Watchdog.deadline) == .stopped)
                seen.append(3)
            }
            loop.perform(after: .milliseconds(1)) {
                seen.append(2)
                loop.stop()
            }
            #expect(loop.runGuarded() == .finished)
        }
        #expect(seen.elements == [1, 2, 3])
    }
}

/// Makes a request whose body holds an object, and whose target is another when none is given.
@discardableResult
private func hold(
    _ released: Counter, _ kind: RequestKind, _ loop: ThreadRunLoop, _ target: LifeProbe? = nil
) -> PerformRequest {
    let held = LifeProbe(released)
    return kind.perform(on: loop, for: target ?? LifeProbe(released)) { _ = held }
}
