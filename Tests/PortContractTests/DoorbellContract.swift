// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("doorbells", .foreignLoops) struct DoorbellContract {
    private func isReadable(_ doorbell: PortDoorbell) throws -> Bool {
        try !sysPoll(doorbell.descriptor, .readable, until: .distantPast).isEmpty
    }

    @Test("a doorbell is readable exactly while messages wait", arguments: TestTransport.allCases)
    func exactly(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 2)
            let right = try bench.farSender(to: port)
            #expect(try port.tryReceive()?.id == nil)  // accepts the connection
            let doorbell = try port.doorbell()
            #expect(try port.doorbell() === doorbell)
            for round in 0..<3 {
                #expect(try !isReadable(doorbell))
                for id in Int32(0)...Int32(round) {
                    #expect(try right.trySend(MachMessage(id: id)) == (id < 2))
                }
                while let message = try port.tryReceive() {
                    _ = message
                    // What is still in the socket counts as well as what is in the queue.
                    if port.queueCount > 0 { #expect(try isReadable(doorbell)) }
                }
            }
            #expect(try !isReadable(doorbell))
            try right.send(MachMessage())
            #expect(try isReadable(doorbell))
            port.invalidate()
            #expect(try isReadable(doorbell))
            #expect(portError { () throws(PortError) in _ = try port.tryReceive() }?.code == .invalidPort)
            #expect(portError { () throws(PortError) in _ = try port.doorbell() } == nil)
        }
    }

    @Test("a doorbell stays readable when a message replaces an older one")
    func replaced() async throws {
        try await onBench(over: .memory) { _ in
            let port = MachPort(queuePolicy: .keepLatest)
            let (right, doorbell) = (port.makeSendRight(), try port.doorbell())
            for id in Int32(1)...2 {
                try right.send(MachMessage(id: id))
                #expect(try isReadable(doorbell))
            }
            #expect(try port.tryReceive()?.id == 2)
            #expect(try !isReadable(doorbell))
        }
    }

    @Test("a doorbell that is made late, or before the sockets, reports what waits", arguments: TestTransport.allCases)
    func late(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = MachPort()
            try port.makeSendRight().send(MachMessage(id: 1))
            let doorbell = try port.doorbell()
            #expect(try isReadable(doorbell))
            #expect(try port.next().id == 1)
            #expect(try !isReadable(doorbell))
            try bench.farSender(to: port).send(MachMessage(id: 2))
            #expect(try isReadable(doorbell))
            #expect(try port.next().id == 2)
        }
    }

    @Test("with many senders and receivers no receiver sleeps while a message waits", arguments: TestTransport.allCases)
    func stress(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (senders, receivers, count) = (3, 3, 300)
            let port = try bench.port(queueLimit: 5)
            let doorbell = try port.doorbell()
            let taken = Atomic<Int>(0)
            // All before the first sends: the far side carries out one order at a time, and waits for room in the queue.
            let rights = try (0..<senders).map { _ in try bench.farSender(to: port) }
            let threads = rights.map { right in
                runOnThread { for id in 0..<count { try right.send(MachMessage(id: Int32(id))) } }
            }
            let takers = (0..<receivers).map { _ in
                runOnThread {
                    while taken.load(ordering: .acquiring) < senders * count {
                        // A doorbell that misses a message would let all threads sleep here forever.
                        let seen = try sysPoll(doorbell.descriptor, .readable, until: Watchdog.deadline)
                        if seen.isEmpty { return Watchdog.expired("the doorbell did not ring") }
                        guard (try? port.tryReceive()) != nil else { continue }
                        let total = taken.add(1, ordering: .acquiringAndReleasing).newValue
                        if total == senders * count { port.invalidate() }  // wakes the others
                    }
                }
            }
            for thread in threads { try thread.join() }
            for thread in takers { try thread.join() }
            #expect(taken.load(ordering: .acquiring) == senders * count)
        }
    }
}
