// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
@testable import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A loop that polls rings is woken by an edge of a socket of its own while it sleeps.
@Suite("an edge wakes a loop that polls rings", .rings, .contract) struct WakeChannelContract {
    /// A port whose loop always sleeps, and a client that has its wake channel.
    private struct Scene {
        let port: MachPort
        let client: RingClient
        let worker = Worker()
        let handled = Recorder<Int32>()

        init(_ bench: Bench) throws {
            port = try bench.port { [handled] _, message in handled.append(message.id) }
            client = try RingClient(1, at: port)
            worker.loop.waitStrategy = .blocking
            try port.schedule(on: worker.loop)
        }

        /// Sends messages, each when the one before was handled.
        func exchange(_ ids: ClosedRange<Int32>) throws {
            for id in ids {
                try client.send(id, times: 1)
                handled.waitUntilCount(Int(id))
            }
        }

        var channel: WakeChannelRegistration {
            get throws { try #require(client.connection.wakeChannel) }
        }

        func end() throws {
            port.invalidate()
            try worker.end()
        }
    }

    private static func withScene(_ body: @escaping @Sendable (Scene) throws -> Void) async throws {
        try await onBench(over: .socket) { bench in
            let scene = try Scene(bench)
            let result = Result { try body(scene) }
            try scene.end()
            try result.get()
        }
    }

    #if PORT_FAULTS
    @Test("a message to a loop that is parked costs either side one system call")
    func cost() async throws {
        try await onBench(over: .socket) { bench in
            let (handled, sleepsBefore) = (Counter("the messages"), Recorder<Int>())
            let port = try bench.port { _, message in
                if message.id == 0 { ThreadRunLoop.current.stop() }
                sleepsBefore.append(ThreadRunLoop.current.waitCounts.sleeps)
                handled.increment()
            }
            let client = try RingClient(1, at: port)
            let loops = Recorder<ThreadRunLoop>()
            let receiver = runOnThread {
                ThreadRunLoop.current.waitStrategy = .blocking
                try port.schedule(on: .current)
                sleepsBefore.append(0)
                loops.append(.current)
                return SystemCallFaults.counting { ThreadRunLoop.current.run(until: Watchdog.deadline) }.calls
            }
            let served = loops.waitUntilCount(1)[0]
            var sent: [SystemCall: Int] = [:]
            for id in (Int32(0)..<1000).reversed() {
                // Once a sleep is counted, the loop polls no ring until the kernel wakes it.
                served.waitUntilAsleep(after: sleepsBefore.takeAll().last ?? 0)
                let (_, calls) = try SystemCallFaults.counting { try client.send(id, times: 1) }
                sent.merge(calls) { $0 + $1 }
                handled.waitUntilCount(1000 - Int(id))
            }
            let received = try receiver.join()
            // The first messages find the loop asleep in other ways.
            #expect(sent[.shutdown] ?? 0 >= 980 && sent.values.reduce(0, +) <= 1010, "\(sent)")
            #expect(received.values.reduce(0, +) <= 1045, "\(received)")
            #expect(received[.recvmsg] ?? 0 <= 15, "\(received)")
            port.invalidate()
        }
    }
    #endif

    @Test("a peer that wakes the loop and writes no messages is cut off, and its messages arrive all the same")
    func flood() async throws {
        try await Self.withScene { scene in
            try scene.exchange(1...20)
            let (channel, waker) = (try scene.channel, try #require(scene.client.ring.waker))
            let deadline = Watchdog.deadline
            // Each is seen before the next one comes: those that come together are one edge.
            while !channel.isCutOff, .now < deadline {
                _ = waker.wake()
                try scene.worker.perform {}
            }
            #expect(channel.isCutOff)
            // The loop has seen what came before; it does not see what comes now.
            try scene.worker.perform {}
            let waits = scene.worker.loop.kernelWaitCount
            for _ in 0..<1000 { _ = waker.wake() }
            #expect(scene.worker.loop.kernelWaitCount <= waits + 2)
            try scene.exchange(21...60)
            #expect(scene.handled.takeAll() == Array(1...60))
        }
    }

    #if PORT_FAULTS
    @Test("a channel that the kernel refuses is skipped: the socket wakes the loop")
    func refused() async throws {
        try await Self.withScene { scene in
            try scene.exchange(1...20)
            let rule = SystemCallFaults.Rule(.shutdown, .fail(EPERM), times: .max)
            _ = try SystemCallFaults.with([rule]) { try scene.exchange(21...60) }
            #expect(scene.handled.takeAll() == Array(1...60))
        }
    }
    #endif

    @Test("messages wake a run within a run, and the one around it when that has ended")
    func nested() async throws {
        try await Self.withScene { scene in
            try scene.exchange(1...20)
            let inside = Gate("the run within a run")
            scene.worker.loop.perform {
                inside.open()
                let outcome = ThreadRunLoop.current.run(until: Watchdog.deadline, returnAfterSourceHandled: true)
                #expect(outcome == .handledSource)
            }
            inside.wait()
            try scene.exchange(21...60)
            #expect(scene.handled.takeAll() == Array(1...60))
        }
    }

    @Test("messages wake a loop whose doorbell others signal between them")
    func withDoorbell() async throws {
        try await Self.withScene { scene in
            for id in Int32(1)...60 {
                try scene.exchange(id...id)
                try scene.worker.perform {}
            }
            #expect(scene.handled.takeAll() == Array(1...60))
        }
    }

    @Test("a channel is in one set, and moves when another loop parks eight times in a row")
    func oneSet() throws {
        let (channel, sending) = try WakeChannel.make()
        let (registration, waker) = (WakeChannelRegistration(channel), try #require(WakeSender(sending)))
        let events = try (0..<2).map { _ in Shared(try EventDescriptor()) }
        let sets = try events.map { try DescriptorSet(wakeEvent: $0) }
        func isSeen(by set: DescriptorSet) -> Bool {
            defer { set.wait(until: .distantPast) { _ in } }
            return (try? sysPoll(set.raw, .readable, until: .distantPast).isEmpty) == false
        }
        // A set that it joins reports it once.
        #expect(registration.join(sets[0]) && registration.join(sets[0]) && isSeen(by: sets[0]) && !isSeen(by: sets[0]))
        for _ in 0..<7 { #expect(!registration.join(sets[1])) }
        #expect(registration.join(sets[0]))
        #expect(waker.wake() && isSeen(by: sets[0]) && !isSeen(by: sets[1]))
        for _ in 0..<7 { #expect(!registration.join(sets[1])) }
        #expect(registration.join(sets[1]) && isSeen(by: sets[1]) && !isSeen(by: sets[1]))
        #expect(waker.wake() && isSeen(by: sets[1]) && !isSeen(by: sets[0]))
        registration.end()
        #expect(!registration.join(sets[1]) && waker.wake() && !isSeen(by: sets[1]))
    }

    @Test("a process that has enough channels gets no rings, and gets them when others are closed")
    func budget() async throws {
        var taken = 0
        while DescriptorBudget.wakeChannels.reserve(1) { taken += 1 }
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            for id in Int32(0)..<100 {
                try right.send(MachMessage(id: id))
                #expect(try port.next().id == id)
            }
            let connection = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            #expect(!connection.hasRings)
        }
        DescriptorBudget.wakeChannels.release(taken)
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            for _ in 0..<2 {
                try right.send(MachMessage())
                _ = try port.next()
            }
            let connection = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            #expect(connection.hasRings && DescriptorBudget.wakeChannels.count >= 4)
        }
    }
}
