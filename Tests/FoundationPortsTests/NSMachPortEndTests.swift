// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import FoundationPorts
import MessagePort
import NamedPortServer
import Synchronization
import TestSupport
import Testing

@Suite("The end of an NSMachPort (D-N5)", .machPorts, .serialized) struct NSMachPortEndTests {
    @Test("D-N5: invalidate posts once, whatever calls it and how often; then nothing is sent, served or registered")
    func once() async throws {
        try await onNewThread {
            let (port, numbers) = (NSMachPort(), Numbers())
            let counter = InvalidityCounter(port)
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.isValid && port.send(1))
            let threads = (0..<4).map { _ in runOnThread { port.invalidate() } }
            for thread in threads { try thread.join() }
            port.invalidate()
            #expect(!port.isValid && counter.value == 1)
            #expect(!port.send(2) && !port.send(before: .distantPast, components: nil, from: nil, reserved: 0))
            #expect(!RunLoop.current.run(mode: .default, before: .watchdog))
            RunLoop.current.add(port, forMode: .default)
            #expect(!RunLoop.current.run(mode: .default, before: .watchdog))
            RunLoop.current.remove(port, forMode: .default)
            #expect(!NSPortNameServer().registerPort(port, name: freshName("ended")))
            #expect(numbers.all == [] && port.description.contains("invalid"))
        }
    }

    @Test("D-N3, D-N5: a right that comes while its object is being invalidated has a new, valid object")
    func comesDuringEnd() async throws {
        let before = PortObjects.shared.counts
        try await onNewThread {
            let server = MachPort()
            let right = server.makeSendRight()
            for _ in 0..<100 {
                let port = PortObjects.shared.object(for: right)
                let isHere = Gate("the look-up")
                let found = Mutex<NSMachPort?>(nil)
                // The threads that wait for the lock get it in their order.
                let threads = PortObjects.shared.state.withLock { _ in
                    let lookUp = runOnThread {
                        isHere.open()
                        found.withLock { $0 = PortObjects.shared.object(for: right) }
                    }
                    isHere.wait()
                    for _ in 0..<100 { yieldThread() }
                    let end = runOnThread { port.invalidate() }
                    // It is marked, and still in the table.
                    poll("the mark") { !port.core.isMarkedValid }
                    return [lookUp, end]
                }
                for thread in threads { try thread.join() }
                let next = try #require(found.withLock { $0 })
                #expect(next.isValid && next !== port)
                #expect(PortObjects.shared.object(for: right) === next)
                next.invalidate()
            }
            server.invalidate()
        }
        #expect(PortObjects.shared.counts == before)
    }

    @Test("D-N5: a port that is released ends, without a notification")
    func released() {
        let other = MachPort()
        let count = Atomic(0)
        let observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: nil, queue: nil
        ) { _ in count.add(1, ordering: .relaxed) }
        let number = {
            let port = NSMachPort()
            #expect(NSPortNameServer().registerPort(port, name: freshName("released")))
            return port.machPort
        }()
        #expect(NSPortNameServer().port(forName: freshName("released")) == nil)
        #expect(!NSMachPort.port(withMachPort: number).isValid)
        #expect(count.load(ordering: .relaxed) == 0)
        NotificationCenter.default.removeObserver(observer)
        other.invalidate()
    }

    @Test("D-N5: the end of a port that was found is noticed, and posted once on the main queue")
    func noticed() async throws {
        let receiver = MachPort()
        try PortNameServer.shared.register(receiver, name: freshName("noticed"))
        let port = try #require(NSMachBootstrapServer.shared.servicePort(withName: freshName("noticed")))
        let onMainQueue = Recorder<Bool>()
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        let observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: port, queue: nil
        ) { _ in onMainQueue.append(DispatchQueue.getSpecific(key: key) == true) }
        #expect(port.isValid)
        receiver.invalidate()
        #expect(await onMainQueue.waitUntilCount(1) == [true])
        #expect(!port.isValid && !port.send(1))
        #expect(onMainQueue.count == 1)
        NotificationCenter.default.removeObserver(observer)
        DispatchQueue.main.setSpecific(key: key, value: nil)
    }

    @Test("D-N5: isValid and a send find the end by themselves, and post once in all", arguments: [true, false])
    func polled(byIsValid: Bool) async throws {
        let receiver = MachPort()
        try PortNameServer.shared.register(receiver, name: freshName("polled"))
        let port = try #require(NSMachBootstrapServer.shared.port(forName: freshName("polled")))
        let counter = InvalidityCounter(port)
        receiver.invalidate()
        #expect(byIsValid ? !port.isValid : !port.send(1))
        #expect(!port.isValid)
        // The notice, if it still came, is before this on the main queue.
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        #expect(counter.value == 1)
    }

    @Test("D-N3, D-N5: another owner's port that was invalidated here is found again as a new, valid object")
    func foundAgain() throws {
        let receiver = MachPort()
        try PortNameServer.shared.register(receiver, name: freshName("again"))
        let port = try #require(NSMachBootstrapServer.shared.port(forName: freshName("again")))
        #expect(NSMachBootstrapServer.shared.port(forName: freshName("again")) === port)
        port.invalidate()
        let again = try #require(NSMachBootstrapServer.shared.port(forName: freshName("again")))
        #expect(again !== port && again.isValid && again == port && again.send(5))
        #expect(try receiver.tryReceive()?.id == 5)
        again.invalidate()
        receiver.invalidate()
    }

    @Test("D-N3: threads that look up, release and invalidate the same ports leave no table entry")
    func races() async throws {
        let before = PortObjects.shared.counts
        let receiver = MachPort(queueLimit: 1)
        try PortNameServer.shared.register(receiver, name: freshName("races"))
        let own = NSMachPort()
        let number = own.machPort
        let threads = (0..<4).map { index in
            runOnThread {
                for round in 0..<rounds(400) {
                    let found = NSMachBootstrapServer.shared.port(forName: freshName("races"))
                    guard let port = found as? NSMachPort else { return false }
                    if (round + index).isMultiple(of: 7) { port.invalidate() }
                    _ = NSMachPort(machPort: port.machPort).isValid
                    if !NSMachPort.port(withMachPort: number).isValid { return false }
                }
                return true
            }
        }
        for thread in threads { #expect(try await thread.join()) }
        own.invalidate()
        receiver.invalidate()
        // The notices on the main queue retain what they end.
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        withExtendedLifetime(own) {}
        #expect(PortObjects.shared.counts.rights == before.rights)
        #expect(PortObjects.shared.counts.numbers <= before.numbers + 1)
    }

    @Test("a forked child's objects are invalid, and it may make new ones")
    func forked() async {
        await #expect(processExitsWith: .success) {
            try forkWithPort()
        }
    }
}

/// The body of the test of that name: a run loop is for code that is not a task's.
private func forkWithPort() throws {
    let (port, numbers) = (NSMachPort(), Numbers())
    port.setDelegate(numbers)
    RunLoop.current.add(port, forMode: .default)
    let child = try forking {
        var failures: [String] = []
        if port.isValid { failures.append("valid") }
        if port.send(1, before: .distantPast) { failures.append("sent") }
        port.invalidate()
        if !port.description.contains("invalid") { failures.append("description") }
        let fresh = NSMachPort()
        if !fresh.isValid || !fresh.send(1, before: .distantPast) { failures.append("a new port") }
        if NSMachPort.port(withMachPort: fresh.machPort) !== fresh { failures.append("a new port's number") }
        if NSMachPort.port(withMachPort: port.machPort).isValid { failures.append("the parent's number") }
        fresh.invalidate()
        return failures
    }
    #expect(exitStatus(of: child) == 0)
    #expect(port.isValid && port.send(1))
    runFoundationLoop(until: { numbers.all == [1] })
    port.invalidate()
}

/// A client's class with members of its own.
private class CountingPort: NSMachPort, @unchecked Sendable {
    let invalidations = Mutex(0)
    let sends = Mutex(0)

    override init() { super.init() }

    override init(machPort: UInt32) { super.init(machPort: machPort) }

    override func invalidate() {
        invalidations.withLock { $0 += 1 }
        super.invalidate()
    }

    override func send(
        before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        sends.withLock { $0 += 1 }
        return super.send(
            before: limitDate, msgid: msgID + 1, components: components, from: receivePort,
            reserved: headerSpaceReserved)
    }
}

/// It has no initialisers of its own, and is its own delegate.
private final class SelfServing: FoundationPorts.MessagePort, PortDelegate, @unchecked Sendable {
    var number: UInt32 = 0

    override func delegate() -> (any PortDelegate)? { self }

    func handle(_ message: PortMessage) { number = message.msgid }
}

@Suite("Classes of clients' (D-N1)", .machPorts, .serialized) struct NSMachPortSubclassTests {
    @Test("D-N1: a subclass of NSMachPort with its own members and overrides sends, receives and ends")
    func overrides() async throws {
        try await onNewThread {
            let (port, numbers) = (CountingPort(), Numbers())
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(1) && port.send(before: .distantPast, components: [], from: port, reserved: 0))
            runFoundationLoop(until: { numbers.all.count == 2 })
            #expect(numbers.all == [2, 1] && port.sends.withLock { $0 } == 2)
            #expect(CountingPort(machPort: port.machPort) == port)
            port.invalidate()
            #expect(!port.isValid && port.invalidations.withLock { $0 } == 1)
        }
    }

    @Test("D-N4: a subclass of MessagePort that overrides delegate() is asked for it with each message")
    func ownDelegate() async throws {
        try await onNewThread {
            let port = SelfServing()
            RunLoop.current.add(port, forMode: .common)
            #expect(port.send(9))
            runFoundationLoop(until: { port.number == 9 })
            port.invalidate()
            #expect(!SelfServing(machPort: 1).isValid)
        }
    }
}
