// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct PerformAndWaitTests {
    struct Refusal: Error, Equatable {}

    @Test("S11: a body runs on the loop's thread, and its caller gets what it returned or threw")
    func result() async throws {
        try await besideLoop { loop in
            let isOnLoop = try loop.performAndWait(within: Watchdog.longTimeout) { loop.isCurrent && !loop.isWaiting }
            #expect(isOnLoop)
            #expect(throws: Refusal()) { try loop.performAndWait(within: Watchdog.longTimeout) { throw Refusal() } }
            let answer = try loop.performAndWait(in: ["other", .common], within: .seconds(Int64.max)) { 7 }
            #expect(answer == 7)
        }
    }

    @Test("S11: on the loop's own thread a body runs at once, whatever the modes and the limit are")
    func inline() async throws {
        try await onLoop { loop in
            let isOnLoop = try loop.performAndWait(in: ["never"], within: .zero) { loop.isCurrent }
            #expect(isOnLoop)
            #expect(throws: Refusal()) { try loop.performAndWait(within: .seconds(-1)) { throw Refusal() } }
            #expect(loop.allModes == [.default])
            loop.perform {
                #expect((try? loop.performAndWait(within: .zero) { loop.currentMode }) == .default)
            }
            #expect(loop.runGuarded() == .finished)
        }
    }

    @Test("S11: a body that has not started within the limit is never called")
    func withdrawn() async throws {
        try await onLoop { loop in
            let waiter = runOnThread {
                #expect(throws: RunLoopError(.timedOut)) {
                    try loop.performAndWait(in: ["other"], within: .milliseconds(1)) {
                        Issue.record("a body that was given up was called")
                    }
                }
            }
            try waiter.join()
            #expect(loop.allModes.contains("other"))
            // Nothing is left behind in the mode.
            #expect(loop.run(mode: "other", until: Watchdog.deadline) == .finished)
            loop.addCommonMode("other")
            #expect(loop.run(mode: "other", until: Watchdog.deadline) == .finished)
        }
    }

    @Test("S11: a body that has started continues when the limit passes")
    func begun() async throws {
        let returned = Counter("bodies that returned")
        try await besideLoop { loop in
            let began = Gate("the body's beginning")
            let mayReturn = Gate("the body's end")
            repeat {
                #expect(throws: RunLoopError(.timedOut)) {
                    try loop.performAndWait(within: .milliseconds(2)) {
                        began.open()
                        mayReturn.wait()
                        returned.increment()
                    }
                }
            } while !began.isOpen
            #expect(returned.value == 0)
            mayReturn.open()
            returned.waitUntilCount(1)
        }
        #expect(returned.value == 1)
    }

    @Test("S11: a limit of zero or less posts nothing to another thread")
    func noLimit() async throws {
        try await besideLoop { loop in
            for limit in [Duration.zero, .seconds(-1), .seconds(Int64.min)] {
                #expect(throws: RunLoopError(.timedOut)) {
                    try loop.performAndWait(in: ["new"], within: limit) { _ = Issue.record("called") }
                }
            }
            #expect(!loop.allModes.contains("new"))
        }
        let ended = try await onLoop { $0 }
        #expect(throws: RunLoopError(.threadEnded)) { try wait(on: ended, .zero) }
        #expect(throws: RunLoopError(.threadEnded)) { try wait(on: ended, Watchdog.longTimeout) }
    }

    private func wait(on loop: ThreadRunLoop, _ limit: Duration) throws {
        try loop.performAndWait(within: limit) { _ = Issue.record("an ended loop has called something") }
    }

    @Test("S11: when the thread ends while eight callers wait, all eight learn it, and nothing is called")
    func threadEnds() async throws {
        let modes = (0..<8).map { RunLoopMode("waiting \($0)") }
        let errors = Recorder<RunLoopError?>("errors")
        let waiters = try await onLoop { loop in
            let waiters = modes.map { mode in
                runOnThread {
                    do {
                        try loop.performAndWait(in: [mode], within: .seconds(Int64.max)) { _ = Issue.record("called") }
                    } catch {
                        errors.append(error as? RunLoopError)
                    }
                }
            }
            loop.waitUntilPosted(to: modes)
            return waiters
        }
        for waiter in waiters { try await waiter.join() }
        #expect(errors.elements == Array(repeating: RunLoopError(.threadEnded), count: 8))
    }

    @Test("S11: requests posted from one thread are called in the order in which they were posted")
    func order() async throws {
        let seen = Recorder<Int>()
        try await besideLoop { loop in
            for number in stride(from: 0, to: 400, by: 4) {
                loop.perform { seen.append(number) }
                loop.perform(for: nil) { seen.append(number + 1) }
                loop.perform(in: [.common]) { seen.append(number + 2) }
                try loop.performAndWait(within: Watchdog.longTimeout) { seen.append(number + 3) }
            }
        }
        #expect(seen.elements == Array(0..<400))
    }

    @Test("S11: eight threads perform and wait on one loop, each in its own order, one body at a time")
    func many() async throws {
        let seen = Recorder<[Int]>()
        try await besideLoop { loop in
            let depth = Counter("bodies")
            let threads = (0..<8).map { thread in
                runOnThread {
                    for number in 0..<200 {
                        let answer = try loop.performAndWait(in: [.common], within: Watchdog.longTimeout) {
                            #expect(depth.increment() == 1)
                            seen.append([thread, number])
                            #expect(depth.increment(by: -1) == 0)
                            return thread * number
                        }
                        #expect(answer == thread * number)
                    }
                }
            }
            for thread in threads { try thread.join() }
        }
        #expect(seen.count == 1600)
        for thread in 0..<8 {
            #expect(seen.elements.filter { $0[0] == thread }.map { $0[1] } == Array(0..<200))
        }
    }

    @Test("what a body holds is released when the wait is over, for whatever reason")
    func released() async throws {
        let released = Counter("released objects")
        try await besideLoop { loop in
            #expect(throws: Never.self) { try hold(released, on: loop, [.default], Watchdog.longTimeout) }
            #expect(released.value == 1)
            #expect(throws: RunLoopError.self) { try hold(released, on: loop, ["never"], .milliseconds(1)) }
            #expect(released.value == 2)
        }
        let ended = try await onLoop { $0 }
        #expect(throws: RunLoopError.self) { try hold(released, on: ended, [.default], Watchdog.longTimeout) }
        #expect(released.value == 3)
    }
}

/// Performs a body that holds an object, and holds that itself no longer than the call.
private func hold(_ released: Counter, on loop: ThreadRunLoop, _ modes: [RunLoopMode], _ limit: Duration) throws {
    let probe = LifeProbe(released)
    try loop.performAndWait(in: modes, within: limit) { _ = probe }
}
