// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

@Suite("NSMachPort on run loops (D-N1, D-N4)", .machPorts, .serialized) struct NSMachPortLoopTests {
    @Test("D-N1: the current thread's loop serves a port, in the mode in which it was added and in no other")
    func currentLoop() async throws {
        try await onNewThread {
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(7) && port.send(8))
            #expect(!RunLoop.current.run(mode: RunLoop.Mode("other"), before: .watchdog))
            #expect(numbers.all == [])
            runFoundationLoop(until: { numbers.all.count == 2 })
            #expect(numbers.all == [7, 8])
            port.invalidate()
        }
    }

    /// A thread whose loop runs until its gate opens.
    private func withOtherLoop(_ body: @escaping @Sendable (RunLoop, CFRunLoop) throws -> Void) async throws {
        try await onNewThread {
            nonisolated(unsafe) var loop: RunLoop?
            let cfLoop = Mutex<CFRunLoop?>(nil)
            let started = Gate("the loop's thread")
            let isDone = Counter("the end")
            let thread = runOnThread {
                loop = RunLoop.current
                let anchor = NSMachPort()
                RunLoop.current.add(anchor, forMode: .default)
                cfLoop.withLock { $0 = CFRunLoopGetCurrent() }
                started.open()
                runFoundationLoop(until: { isDone.value > 0 })
                anchor.invalidate()
            }
            started.wait()
            let (running, cfRunning) = (try #require(loop), try #require(cfLoop.withLock { $0 }))
            let result = Result { try body(running, cfRunning) }
            isDone.increment()
            CFRunLoopStop(cfRunning)
            poll("the loop's thread ends") {
                CFRunLoopStop(cfRunning)
                return thread.hasEnded
            }
            loop = nil
            try thread.join()
            try result.get()
        }
    }

    @Test("D-N1: another thread's loop serves a port, and is woken by its addition")
    func otherLoop() async throws {
        try await withOtherLoop { loop, cfLoop in
            #expect(loop.coreFoundationLoop() == cfLoop)
            let (port, threads) = (NSMachPort(), Recorder<Bool>())
            let handler = Handler { _ in threads.append(CFRunLoopGetCurrent() == cfLoop) }
            port.setDelegate(handler)
            loop.add(port, forMode: .default)
            #expect(port.send(1))
            #expect(threads.waitUntilCount(1) == [true])
            port.invalidate()
        }
    }

    @Test("D-N1: without Foundation's property, another thread's loop adds and removes the port itself")
    func otherLoopByTimer() async throws {
        let before = PortObjects.shared.counts
        defer { #expect(PortObjects.shared.counts == before) }
        try await withOtherLoop { loop, cfLoop in
            #expect(loop.coreFoundationLoop(storedAs: "gone") == nil)
            let (port, threads) = (NSMachPort(), Recorder<Bool>())
            let handler = Handler { _ in threads.append(CFRunLoopGetCurrent() == cfLoop) }
            port.setDelegate(handler)
            port.schedule(in: loop, forMode: .default, storedAs: "gone")
            #expect(port.send(1))
            #expect(threads.waitUntilCount(1) == [true])
            port.remove(from: loop, forMode: .default, storedAs: "gone")
            // Runs after the timer that removes the port.
            let removed = Gate("the loop's next timer")
            loop.add(Timer(fire: Date(), interval: 0, repeats: false) { _ in removed.open() }, forMode: .default)
            CFRunLoopWakeUp(cfLoop)
            removed.wait()
            for number in 0..<5 { #expect(port.send(number)) }
            #expect(!port.send(5, before: .distantPast))
            #expect(threads.count == 1)
            port.invalidate()
        }
    }

    @Test("D-N1: a port in two modes is served in both, and one that was added twice calls once for each message")
    func twoModes() async throws {
        try await onNewThread {
            let other = RunLoop.Mode("other")
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            for mode in [RunLoop.Mode.default, other, .default] { RunLoop.current.add(port, forMode: mode) }
            for (index, mode) in [RunLoop.Mode.default, other, .default, other].enumerated() {
                #expect(port.send(index))
                runFoundationLoop(mode, until: { numbers.all.count > index })
            }
            #expect(numbers.all == [0, 1, 2, 3])
            RunLoop.current.remove(port, forMode: .default)
            #expect(port.send(4))
            #expect(!RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(numbers.all.count == 4)
            runFoundationLoop(other, until: { numbers.all.count == 5 })
            RunLoop.current.remove(port, forMode: other)
            RunLoop.current.add(port, forMode: other)
            #expect(port.send(5))
            runFoundationLoop(other, until: { numbers.all.count == 6 })
            port.invalidate()
            #expect(!RunLoop.current.run(mode: other, before: .watchdog))
        }
    }

    @Test("D-N1: a port in the common modes is served in each of them")
    func commonModes() async throws {
        try await onNewThread {
            let other = RunLoop.Mode("other")
            CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), CFRunLoopMode(other.rawValue as CFString))
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .common)
            #expect(port.send(1) && port.send(2))
            runFoundationLoop(until: { numbers.all == [1] })
            runFoundationLoop(other, until: { numbers.all == [1, 2] })
            port.invalidate()
        }
    }

    @Test("D-N4: one run handles one message, and a run inside of a delegate handles the next")
    func oneForOne() async throws {
        try await onNewThread {
            let (port, log) = (NSMachPort(), Recorder<String>())
            let handler = Handler { message in
                log.append("begin \(message.msgid)")
                if message.msgid == 1 { _ = RunLoop.current.run(mode: .default, before: .watchdog) }
                log.append("end \(message.msgid)")
            }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            for number in 0..<4 { #expect(port.send(number)) }
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(log.elements == ["begin 0", "end 0"])
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(log.elements.dropFirst(2) == ["begin 1", "begin 2", "end 2", "end 1"])
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(log.elements.suffix(2) == ["begin 3", "end 3"])
            port.invalidate()
        }
    }

    @Test("D-N4: without a delegate a message is dropped, and ends a run all the same")
    func noDelegate() async throws {
        try await onNewThread {
            let port = NSMachPort()
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(1))
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            let numbers = Numbers()
            port.setDelegate(numbers)
            #expect(port.send(2))
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(numbers.all == [2])
            port.invalidate()
        }
    }

    @Test("D-N4: the delegate is not retained")
    func delegateReference() {
        let port = NSMachPort()
        weak let weakNumbers: Numbers? = {
            let numbers = Numbers()
            port.setDelegate(numbers)
            #expect(port.delegate() === numbers)
            return numbers
        }()
        #expect(weakNumbers == nil && port.delegate() == nil)
        port.setDelegate(nil)
    }

    @Test(
        "D-N4: the loop retains a port that it serves, until the port is removed or invalidated",
        arguments: [true, false])
    func retained(byRemoval: Bool) async throws {
        try await onNewThread {
            let numbers = Numbers()
            nonisolated(unsafe) weak var port: NSMachPort?
            do {
                let made = NSMachPort()
                made.setDelegate(numbers)
                RunLoop.current.add(made, forMode: .default)
                port = made
            }
            #expect(port?.send(1) == true)
            runFoundationLoop(until: { numbers.all == [1] })
            if byRemoval { RunLoop.current.remove(port ?? NSMachPort(), forMode: .default) } else { port?.invalidate() }
            #expect(port == nil)
        }
    }

    @Test("D-N5: a delegate that invalidates the port gets no message more, and no other run handles one")
    func invalidatedInHandler() async throws {
        try await onNewThread {
            let (port, log) = (NSMachPort(), Recorder<UInt32>())
            let handler = Handler { message in
                log.append(message.msgid)
                message.receivePort?.invalidate()
                #expect(message.receivePort?.isValid == false)
            }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(1) && port.send(2))
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(!RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(log.elements == [1])
        }
    }
}
