// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What other threads do to a loop that sleeps.

import CoreFoundation
import Foundation
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct SleepingLoopTests {
    private static let soon: CFTimeInterval = 0.03

    /// Runs the present thread's CFRunLoop; another thread acts when it is about to sleep.
    private static func sleepInCoreFoundation(
        _ seconds: CFTimeInterval = CFTimeInterval(Limit.longest.components.seconds),
        _ act: @escaping @Sendable (CFRunLoop) -> Void
    ) throws -> Outcome? {
        let loop = Shared<CFRunLoop>(value: CFRunLoopGetCurrent())
        let asleep = Gate("the sleep")
        let mask = CFRunLoopActivity.beforeWaiting.rawValue
        let observer = CFRunLoopObserverCreateWithHandler(nil, mask, true, 0) { _, _ in asleep.open() }
        CFRunLoopAddObserver(loop.value, observer, Mode.default.name)
        let actor = runOnThread {
            asleep.wait()
            act(loop.value)
        }
        let outcome = runCoreFoundation(.default, seconds)
        try actor.join()
        CFRunLoopObserverInvalidate(observer)
        return outcome
    }

    /// The same for the loop of this package.
    private static func sleepInPackage(_ act: @escaping @Sendable (ThreadRunLoop) -> Void) throws -> RunLoopRunResult {
        let loop = ThreadRunLoop.current
        let asleep = Gate("the sleep")
        let observer = RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() }
        loop.add(observer)
        let actor = runOnThread {
            asleep.wait()
            act(loop)
        }
        let result = loop.run(for: Limit.longest)
        try actor.join()
        observer.invalidate()
        return result
    }

    @Test("CF 13, D1: a signal from another thread is not noticed without a wake-up")
    func signal() async throws {
        try await onNewThread {
            var context = CFRunLoopSourceContext()
            context.perform = { _ in CFRunLoopStop(CFRunLoopGetCurrent()) }
            let source = Shared(value: CFRunLoopSourceCreate(nil, 0, &context))
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source.value, Mode.default.name)
            let outcome = try Self.sleepInCoreFoundation(Self.soon) { _ in CFRunLoopSourceSignal(source.value) }
            #expect(outcome == .timedOut)
            CFRunLoopSourceInvalidate(source.value)
        }
        try await onNewThread {
            let source = RunLoopSource { ThreadRunLoop.current.stop() }
            ThreadRunLoop.current.add(source)
            let result = try Self.sleepInPackage { _ in source.signal() }
            #expect(result == .stopped)
            source.invalidate()
        }
    }

    @Test("CF 21: a port that is ready when another thread adds it ends the sleep")
    func addReadyPort() async throws {
        try await onNewThread {
            let event = try EventDescriptor(.eventfd)
            let idle = ClosureSource()
            idle.add(to: CFRunLoopGetCurrent())
            let port = Shared(value: ClosureSource(port: event.raw) { CFRunLoopStop(CFRunLoopGetCurrent()) })
            event.signal()
            let result = try Self.sleepInCoreFoundation { port.value.add(to: $0) }
            #expect(result == .stopped)
            port.value.invalidate()
            idle.invalidate()
        }
        try await onNewThread {
            let event = try EventDescriptor(.eventfd)
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            let port = RunLoopSource(descriptor: event.raw) { ThreadRunLoop.current.stop() }
            event.signal()
            let result = try Self.sleepInPackage { $0.add(port) }
            #expect(result == .stopped)
            port.invalidate()
            idle.invalidate()
        }
    }

    @Test(
        "CF 30: a timer that another thread adds, or gives a date, is fired by a loop that sleeps",
        arguments: [true, false])
    func timer(_ isAdded: Bool) async throws {
        try await onNewThread {
            let idle = ClosureSource()
            idle.add(to: CFRunLoopGetCurrent())
            let made = CFRunLoopTimerCreateWithHandler(nil, isAdded ? 0 : 1e9, 0, 0, 0) { _ in
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            let timer = Shared(value: made)
            if !isAdded { CFRunLoopAddTimer(CFRunLoopGetCurrent(), made, Mode.default.name) }
            let outcome = try Self.sleepInCoreFoundation { loop in
                if isAdded {
                    CFRunLoopAddTimer(loop, timer.value, Mode.default.name)
                } else {
                    CFRunLoopTimerSetNextFireDate(timer.value, 0)
                }
            }
            #expect(outcome == .stopped)
            idle.invalidate()
        }
        try await onNewThread {
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            let timer = RunLoopTimer(fireDate: isAdded ? .distantPast : .distantFuture) { _ in
                ThreadRunLoop.current.stop()
            }
            if !isAdded { ThreadRunLoop.current.add(timer) }
            let result = try Self.sleepInPackage { loop in
                if isAdded { loop.add(timer) } else { timer.setNextFireDate(.distantPast) }
            }
            #expect(result == .stopped)
            idle.invalidate()
        }
    }

    @Test("D5: removing the last item on another thread ends a sleep")
    func lastItem() async throws {
        try await onNewThread {
            let source = Shared(value: ClosureSource())
            source.value.add(to: CFRunLoopGetCurrent())
            let result = try Self.sleepInCoreFoundation(Self.soon) { source.value.remove(from: $0) }
            #expect(result == .timedOut)
        }
        try await onNewThread {
            let source = RunLoopSource {}
            ThreadRunLoop.current.add(source)
            let result = try Self.sleepInPackage { $0.remove(source) }
            #expect(result == .finished)
        }
    }
}
