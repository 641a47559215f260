// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Behaviours of loops that are no matter of traces, most of them because a second thread has a part in them.

import CoreFoundation
import Foundation
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct LoopQuestionTests {
    @Test(
        "CF 4, D28: the common modes are known by their object when something is added, and posting a block makes a mode of them"
    )
    func pseudoMode() async throws {
        try await onNewThread {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            let timer = CFRunLoopTimerCreateWithHandler(nil, 1e9, 0, 0, 0) { _ in }
            CFRunLoopAddTimer(loop, timer, CFString.of("kCFRunLoopCommonModes"))
            #expect(!CFRunLoopContainsTimer(loop, timer, Mode.default.name))
            #expect(CFArrayGetCount(CFRunLoopCopyAllModes(loop)) == 2)
            CFRunLoopTimerInvalidate(timer)
        }
        try await onNewThread {
            CFRunLoopPerformBlock(CFRunLoopGetCurrent(), Mode.common.name, {})
            #expect(CFArrayGetCount(CFRunLoopCopyAllModes(CFRunLoopGetCurrent())) == 2)
        }
        try await onNewThread {
            let loop = ThreadRunLoop.current
            let timer = RunLoopTimer(fireDate: .distantFuture) { _ in }
            loop.add(timer, to: RunLoopMode("common"))
            #expect(loop.contains(timer, in: .default))
            loop.perform(in: [.common]) {}
            #expect(loop.allModes == [.default])
            timer.invalidate()
        }
    }

    @Test("CF 34: the private stop of a mode stays pending for the next run of that mode, as a stop does here")
    func stopMode() async throws {
        try await onNewThread {
            typealias StopMode = @convention(c) (UnsafeRawPointer, UnsafeRawPointer) -> Void
            let stopMode = try #require(dlsym(nil, "_CFRunLoopStopMode").map { unsafeBitCast($0, to: StopMode.self) })
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            let name = Mode.default.name
            let idle = ClosureSource()
            idle.add(to: loop)
            stopMode(Unmanaged.passUnretained(loop).toOpaque(), Unmanaged.passUnretained(name).toOpaque())
            #expect(runCoreFoundation() == .stopped)
            #expect(runCoreFoundation() == .timedOut)
            idle.invalidate()
        }
        try await onNewThread {
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            ThreadRunLoop.current.stop()
            #expect(ThreadRunLoop.current.run(for: .zero) == .stopped)
            #expect(ThreadRunLoop.current.run(for: .zero) == .timedOut)
            idle.invalidate()
        }
    }

    @Test("CF 37: a loop that only polls is waiting for a moment, too")
    func isWaiting() async throws {
        try await onNewThread {
            let loop = Shared<CFRunLoop>(value: CFRunLoopGetCurrent())
            let idle = ClosureSource()
            idle.add(to: loop.value)
            try Self.poll({ runCoreFoundation() }, until: { CFRunLoopIsWaiting(loop.value) })
            idle.invalidate()
        }
        try await onNewThread {
            let loop = ThreadRunLoop.current
            let idle = RunLoopSource {}
            loop.add(idle)
            try Self.poll({ loop.run(for: .zero) }, until: { loop.isWaiting })
            idle.invalidate()
        }
    }

    /// Polls again and again, until another thread has seen that the loop waits.
    private static func poll<Ignored>(_ run: () -> Ignored, until isWaiting: @escaping @Sendable () -> Bool) throws {
        let deadline = Watchdog.deadline
        let other = runOnThread {
            while !isWaiting(), MonotonicInstant.now < deadline {}
            return MonotonicInstant.now < deadline
        }
        while !other.hasEnded { _ = run() }
        let hasSeen = try other.join()
        #expect(hasSeen)
    }

    @Test("CF 38: when a thread ends, sources are cancelled and blocks that wait are released without a call")
    func threadEnd() async throws {
        let events = Recorder<String>()
        let keeper = Shared(value: ClosureSource(cancel: { events.append("cancel") }))
        try await onNewThread {
            keeper.value.add(to: CFRunLoopGetCurrent())
            let token = Token { events.append("release") }
            CFRunLoopPerformBlock(CFRunLoopGetCurrent(), Mode.default.name, { token.call(events) })
            let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in events.append("timer") }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, Mode.default.name)
        }
        #expect(events.takeAll() == ["cancel", "release"])
        try await onNewThread {
            let source = RunLoopSource(cancel: { _, _ in events.append("cancel") }, perform: {})
            ThreadRunLoop.current.add(source)
            let token = Token { events.append("release") }
            ThreadRunLoop.current.perform { token.call(events) }
            ThreadRunLoop.current.add(RunLoopTimer(fireDate: .distantPast) { _ in events.append("timer") })
        }
        #expect(events.takeAll().sorted() == ["cancel", "release"])
    }

    @Test("CF 42: the activities have the values of the C constants; Foundation's private ones have not")
    func activities() {
        let pairs: [(RunLoopActivity, CFRunLoopActivity)] = [
            (.entry, .entry), (.beforeTimers, .beforeTimers), (.beforeSources, .beforeSources),
            (.beforeWaiting, .beforeWaiting), (.afterWaiting, .afterWaiting), (.exit, .exit), (.all, .allActivities),
        ]
        for (own, other) in pairs { #expect(own.rawValue == UInt(other.rawValue)) }
    }

    @Test("D19: a timer may be in several loops")
    func twoLoops() async throws {
        let timer = Shared(value: CFRunLoopTimerCreateWithHandler(nil, 1e9, 0, 0, 0) { _ in })
        let own = RunLoopTimer(fireDate: .distantFuture) { _ in }
        try await onNewThread {
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer.value, Mode.default.name)
            ThreadRunLoop.current.add(own)
            try onNewThread {
                CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer.value, Mode.default.name)
                #expect(!CFRunLoopContainsTimer(CFRunLoopGetCurrent(), timer.value, Mode.default.name))
                ThreadRunLoop.current.add(own)
                #expect(ThreadRunLoop.current.contains(own))
            }
            CFRunLoopTimerInvalidate(timer.value)
            own.invalidate()
        }
    }

    @Test("D25: items enter a mode that becomes common in the order in which they were added to the common modes")
    func commonOrder() async throws {
        let names = (0..<20).map { "o\($0)" }
        let items: [Item] = names.map { .observer($0, [.entry]) } + [.source("idle")]
        let scenario = Scenario(
            items, items.map { .add($0.name, .common) } + [.addCommonMode(.alpha), .run(.alpha, .zero)], traced: [])
        let comparison = try await offThePool { try Comparison(scenario) }
        #expect(comparison.package.entries == names + ["=timedOut@alpha"])
        // Here they come in the order of a hash table, which may by chance be the same.
        #expect(comparison.coreFoundation.entries.sorted() == comparison.package.entries.sorted())
    }
}

/// Calls a closure when the last reference to it is released.
private final class Token: Sendable {
    private let onEnd: @Sendable () -> Void

    init(_ onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    func call(_ events: Recorder<String>) {
        events.append("call")
    }
}
