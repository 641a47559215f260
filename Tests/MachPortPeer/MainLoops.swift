// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import PortSystem
import Synchronization

/// Counts the messages of a port, whose numbers must be 0, 1, 2 …
final class Sequence: NSObject, NSMachPortDelegate, Sendable {
    private struct State {
        var count = 0
        var isInOrder = true
        var allOnMainThread = true
    }

    private let state = Mutex(State())
    var count: Int { state.withLock { $0.count } }
    var isInOrder: Bool { state.withLock { $0.isInOrder } }
    var allOnMainThread: Bool { state.withLock { $0.allOnMainThread } }

    func handle(_ message: PortMessage) {
        let isMain = sysThreadID() == getpid()
        state.withLock { state in
            if message.msgid != UInt32(state.count) { state.isInOrder = false }
            if !isMain { state.allOnMainThread = false }
            state.count += 1
        }
    }
}

/// A number that threads count up.
final class Tally: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .acquiring) }
    func add() { count.add(1, ordering: .releasing) }
}

extension NSMachPort {
    /// Sends a message, and waits for room.
    func send(number: Int) { send(before: .distantFuture, msgid: number, components: [], from: nil, reserved: 0) }
    /// Sends one if there is room.
    func trySend(number: Int) -> Bool {
        send(before: .distantPast, msgid: number, components: [], from: nil, reserved: 0)
    }
}

/// A program that adds a port to its main run loop, runs the loop, stops, runs it in another mode, and runs it again.
struct MainLoopScenario {
    func run() {
        let (port, sequence) = (NSMachPort(), Sequence())
        port.setDelegate(sequence)
        for number in 0..<5 { port.send(number: number) }
        RunLoop.main.add(port, forMode: .default)
        say("full \(!port.trySend(number: 5))")
        let blocked = Tally()
        let producer = Thread {
            for number in 5..<300 where !port.trySend(number: number) {
                blocked.add()
                port.send(number: number)
                blocked.add()
            }
        }
        producer.start()

        // One run for each message: nothing else ends a run.
        var runs = 0
        while sequence.count < 100 {
            _ = RunLoop.main.run(mode: .default, before: .distantFuture)
            runs += 1
        }
        say("runs \(runs) messages \(sequence.count)")

        // The loop is in no mode, and messages wait; then it runs in another common mode, in which the port is not.
        while blocked.value.isMultiple(of: 2) { sched_yield() }
        let other = CFRunLoopMode("other")
        CFRunLoopAddCommonMode(CFRunLoopGetMain(), other)
        // CoreFoundation makes the mode for it.
        let anchor = NSMachPort()
        RunLoop.main.add(anchor, forMode: RunLoop.Mode("other"))
        let before = sequence.count
        let blocks = Tally()
        for _ in 0..<50 {
            DispatchQueue.main.async { blocks.add() }
            CFRunLoopRunInMode(other, 60, true)
        }
        say("blocks \(blocks.value) messages \(sequence.count - before)")
        say("wake-ups \(countWakeUps(in: other))")

        while sequence.count < 300 { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
        say("order \(sequence.isInOrder) main \(sequence.allOnMainThread) events \(MainQueueService.shared.eventCount)")
        port.invalidate()
        anchor.invalidate()
        say("ports \(MainQueueService.shared.portCount)")
    }

    /// How often the main loop wakes in a mode until its timer fires ten times, besides for the timer.
    private func countWakeUps(in mode: CFRunLoopMode) -> Int {
        let (fires, wakeUps) = (Tally(), Tally())
        let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0.02, 0, 0) { _ in
            fires.add()
            if fires.value == 10 { CFRunLoopStop(CFRunLoopGetMain()) }
        }
        let activities = CFRunLoopActivity.afterWaiting.rawValue
        let observer = CFRunLoopObserverCreateWithHandler(nil, activities, true, 0) { _, _ in
            wakeUps.add()
        }
        CFRunLoopAddTimer(CFRunLoopGetMain(), timer, mode)
        CFRunLoopAddObserver(CFRunLoopGetMain(), observer, mode)
        while fires.value < 10 { CFRunLoopRunInMode(mode, 60, false) }
        CFRunLoopTimerInvalidate(timer)
        CFRunLoopObserverInvalidate(observer)
        return max(0, wakeUps.value - fires.value)
    }
}

/// A program whose main thread adds a port, runs its loop, and then gives the main queue to other threads.
struct DispatchMainScenario {
    func run() {
        let (port, sequence) = (NSMachPort(), Sequence())
        port.setDelegate(sequence)
        RunLoop.main.add(port, forMode: .common)
        Thread.detachNewThread { finish(port, sequence) }
        while sequence.count < 100 { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
        say("loop \(sequence.allOnMainThread) events \(MainQueueService.shared.eventCount)")
        dispatchMain()
    }

    /// The port is added by another thread, while the main thread has neither run its loop nor left it.
    func runFromAnotherThread() {
        let (port, sequence) = (NSMachPort(), Sequence())
        port.setDelegate(sequence)
        let added = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            RunLoop.main.add(port, forMode: .common)
            for number in 0..<5 { port.send(number: number) }
            added.signal()
            for number in 5..<200 { port.send(number: number) }
            finish(port, sequence, from: 200)
        }
        added.wait()
        say("loop \(sequence.allOnMainThread) events \(MainQueueService.shared.eventCount)")
        dispatchMain()
    }

    private func finish(_ port: NSMachPort, _ sequence: Sequence, from first: Int = 0) {
        for number in first..<300 { port.send(number: number) }
        while sequence.count < 300 { _ = usleep(1_000) }
        DispatchQueue.main.sync {}
        port.invalidate()
        say("order \(sequence.isInOrder) ports \(MainQueueService.shared.portCount)")
        exit(0)
    }
}

/// A program whose code on the main queue, as a main actor's, adds ports to its current loop: that of some thread.
struct MainQueueLoopScenario {
    // @unchecked: one thread after the other uses them.
    private struct Served: @unchecked Sendable {
        let loop: RunLoop
        let name: String
        let local: CFMessagePort?
        let source: CFRunLoopSource?
        /// On the current loop, and removed from the main one.
        let other: CFRunLoopSource?
        let current: CFRunLoop?
    }

    func run() {
        let (port, sequence) = (NSMachPort(), Sequence())
        port.setDelegate(sequence)
        DispatchQueue.main.async {
            RunLoop.current.add(port, forMode: .common)
            let name = "main-queue-loop.\(getpid())"
            let local = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, _, _ in
                    dispatchPrecondition(condition: .onQueue(.main))
                    return nil
                }, nil, nil)
            let source = CFMessagePortCreateRunLoopSource(nil, local, 0)
            let current = CFRunLoopGetCurrent()
            CFRunLoopAddSource(current, source, .commonModes)
            let second = CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)
            let other = CFMessagePortCreateRunLoopSource(nil, second, 0)
            CFRunLoopAddSource(current, other, .commonModes)
            let contains = CFRunLoopContainsSource(current, source, .commonModes)
            say("main \(current === CFRunLoopGetMain()) contains \(contains)")
            // A loop that runs inside of the code serves it, too.
            say("status \(ask(name))")
            let served = Served(
                loop: .current, name: name, local: local, source: source, other: other, current: current)
            Thread.detachNewThread { finish(port, sequence, served) }
        }
        dispatchMain()
    }

    private func ask(_ name: String) -> Int32 {
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        return CFMessagePortSendRequest(remote, 1, nil, 60, 3_600, CFRunLoopMode.defaultMode.rawValue, nil)
    }

    private func finish(_ port: NSMachPort, _ sequence: Sequence, _ served: Served) {
        let status = ask(served.name)
        for number in 0..<10 { port.send(number: number) }
        while sequence.count < 10 { _ = usleep(1_000) }
        say("status \(status) order \(sequence.isInOrder)")
        served.loop.remove(port, forMode: .common)
        CFRunLoopRemoveSource(served.current, served.source, .commonModes)
        CFRunLoopRemoveSource(CFRunLoopGetMain(), served.other, .commonModes)
        say("left \(CFRunLoopContainsSource(served.current, served.other, .commonModes))")
        DispatchQueue.main.sync {}
        let ports = MainQueueService.shared.portCount
        port.send(number: 10)
        DispatchQueue.main.sync {}
        say("ports \(ports) count \(sequence.count)")
        exit(0)
    }
}
