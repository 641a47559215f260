// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What comes through rings is charged as what comes through sockets is.
@Suite("fairness between processes with rings", .rings, .contract) struct RingFairnessTests {
    private static let (busyPeer, other) = (Int32(900_001), Int32(900_002))

    @Test("a process with all its rings full keeps another waiting for about the queue, not for them all")
    func busyPeer() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let busyPeer = try (0..<Tuning.ringLimit).map { _ in try RingClient(Self.busyPeer, at: port) }
            let late = try RingClient(Self.other, at: port)
            for client in busyPeer { try client.send(1, times: 700) }
            port.localPort.receiveFromSockets()
            #expect(port.queueCount <= port.queueLimit)
            try late.send(7, times: 1)
            // Nothing that the others sent is lost.
            #expect(try port.countOthers(than: 7) == Tuning.ringLimit * 700)
            withExtendedLifetime((busyPeer, late)) {}
        }
    }

    @Test("a port that drops what it has no room for reads a limited number of packets of one process per message")
    func flood() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 4, policy: .dropOldest)
            let flood = try (0..<Tuning.ringLimit).map { _ in try RingClient(Self.busyPeer, at: port) }
            for client in flood { try client.send(1, times: 1_000) }
            #expect(try port.countFlood() == Tuning.ringLimit * 1_000)
            withExtendedLifetime(flood) {}
        }
    }

    /// What polls the ring of a process that is over its limits.
    enum Poller: CaseIterable, Sendable { case port, spinningLoop }

    @Test(
        "nothing more is read from the ring of a process over its limits, and no loop spins; receiving resumes it",
        arguments: Poller.allCases)
    func delayed(poller: Poller) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            var limits = PeerLimits()
            limits.queuedBytes = 15_000
            port.setPeerLimits(limits)
            let sockets = try #require(port.localPort.sockets)
            let client = try RingClient(Self.busyPeer, at: port)
            port.localPort.receiveFromSockets()
            if poller == .spinningLoop { #expect(client.connection.beginBusyPolling() != nil) }
            for id in Int32(0)..<5 { try client.ring.write(MachMessage(id: id, bytes: pattern(10_000))) }
            if poller == .spinningLoop {
                #expect(client.connection.hasArrived)
                #expect(client.connection.receiveArrivals())
                client.connection.endBusyPolling()
            }
            for _ in 0..<3 { port.localPort.receiveFromSockets() }
            // The second exceeds the limit.
            #expect(port.queueCount == 2)
            #expect(try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
            for id in Int32(0)..<5 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive() == nil)
            #expect(sockets.quotas.withLock { !$0.isOver(.process(Self.busyPeer)) })
            #expect(try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
        }
    }

    @Test(
        "a loop that is not alone stops polling at the last packet that it reads: the kernel reports the next one"
    )
    func stopsAtLastPacket() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let sockets = try port.localPort.openSockets()
            let client = try RingClient(Self.busyPeer, at: port)
            port.localPort.receiveFromSockets()
            // The loop is not the only listener of the port: otherwise it could go on polling.
            #expect(try port.tryReceive() == nil)
            for id in Int32(0)..<3 {
                #expect(client.connection.beginBusyPolling() != nil)
                try client.send(id, times: 2)
                #expect(try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
                #expect(client.connection.hasArrived && client.connection.receiveArrivals())
                #expect(port.queueCount == 2)
                try client.send(id, times: 1)
                #expect(try !sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
                client.connection.endBusyPolling()
                for _ in 0..<3 { #expect(try port.next().id == id) }
                #expect(try port.tryReceive() == nil)
            }
        }
    }

    @Test(
        "a ring in which a loop found nothing 64 times is polled no more, until the kernel reports something",
        arguments: [false, true])
    func emptyRing(isPlain: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let sockets = try port.localPort.openSockets()
            let client = try RingClient(Self.busyPeer, at: port)
            // Plain messages are read in batches, others one by one.
            func send(_ id: Int32) throws { try isPlain ? client.send(id...id) : client.send(id, times: 1) }
            port.localPort.receiveFromSockets()
            for id in Int32(0)..<2 {
                for _ in 0..<64 {
                    #expect(client.connection.beginBusyPolling() != nil)
                    client.connection.endBusyPolling()
                }
                #expect(client.connection.beginBusyPolling() == nil)
                try send(id)
                #expect(try !sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
                #expect(try port.next().id == id)
                #expect(try port.tryReceive() == nil)
            }
            // What a poll finds counts as well.
            for id in Int32(0)..<100 {
                #expect(client.connection.beginBusyPolling() != nil)
                try send(id)
                #expect(client.connection.hasArrived && client.connection.receiveArrivals())
                client.connection.endBusyPolling()
                #expect(try port.next().id == id)
            }
        }
    }

    @Test("a poll that is over changes nothing of the next one, which may be another loop's")
    func polls() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            _ = try port.localPort.openSockets()
            let client = try RingClient(Self.busyPeer, at: port)
            port.localPort.receiveFromSockets()
            let connection = client.connection
            let first = try #require(connection.beginBusyPolling())
            #expect(connection.park(first))
            #expect(client.ring.producer.consumerState == .parked)
            connection.endBusyPolling()
            #expect(client.ring.producer.consumerState == .asleep)
            let second = try #require(connection.beginBusyPolling())
            #expect(second != first)
            #expect(connection.park(second))
            connection.unpark(first)
            connection.endBusyPolling(first)
            #expect(!connection.park(first))
            #expect(client.ring.producer.consumerState == .parked)
            connection.unpark(second)
            #expect(client.ring.producer.consumerState == .awake)
            connection.endBusyPolling(second)
            #expect(client.ring.producer.consumerState == .asleep)
        }
    }

    @Test("what a loop that polled cannot read, because the queue is full, is reported by the kernel")
    func unreported() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 3)
            let sockets = try port.localPort.openSockets()
            let client = try RingClient(Self.busyPeer, at: port)
            port.localPort.receiveFromSockets()
            #expect(client.connection.beginBusyPolling() != nil)
            #expect(client.connection.beginBusyPolling() == nil)
            try client.send(1, times: 10)
            // No loop was woken.
            #expect(try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
            client.connection.endBusyPolling()
            #expect(port.queueCount == 3)
            #expect(try !sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
            for _ in 0..<10 { #expect(try port.next().id == 1) }
            #expect(try port.tryReceive() == nil)
            #expect(try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty)
        }
    }

    @Test("a loop that only awaits a reply over a port's connection is notified of what a polling loop has left")
    func leftByPollingLoop() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 300)
            _ = try port.localPort.openSockets()
            let client = try RingClient(Self.busyPeer, at: port)
            port.localPort.receiveFromSockets()
            let source = try #require(try client.connection.replySource())
            let worker = Worker()
            worker.loop.waitStrategy = .blocking
            worker.loop.add(source)
            try worker.perform {}
            #expect(client.connection.beginBusyPolling() != nil)
            // More than is read at once.
            try client.send(1, times: 200)
            client.connection.endBusyPolling()
            let deadline = Watchdog.deadline
            while port.queueCount < 200, .now < deadline { yieldThread() }
            #expect(port.queueCount == 200)
            source.invalidate()
            try worker.end()
        }
    }
}
