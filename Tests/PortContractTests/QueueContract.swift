// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("a full queue", .contract) struct QueueContract {
    @Test("trySend says full, the rest arrives once and in order", arguments: TestTransport.withName, [1, 3, 64])
    func full(over transport: TestTransport, limit: Int) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: limit)
            #expect(try port.queueLimit == limit)
            let right = try bench.right(to: port)
            let count = try right.fill(bytes: 3000)
            #expect(count == limit)
            #expect(try !right.trySend(MachMessage(id: -1)))
            #expect(
                portError { () throws(PortError) in try right.send(MachMessage(id: -1), within: .zero) }?.code
                    == .sendTimedOut)
            #expect(
                portError { () throws(PortError) in try right.send(MachMessage(id: -1), within: .seconds(-1)) }?.code
                    == .sendTimedOut)
            #expect(
                portError { () throws(PortError) in try right.send(MachMessage(id: -1), within: .milliseconds(1)) }?
                    .code == .sendTimedOut)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
            #expect(try right.trySend(MachMessage(id: 1)))
            #expect(try port.next().id == 1)
        }
    }

    @Test("the queue limit bounds what a port reads from its sockets", arguments: TestTransport.connected)
    func bounded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, _) = try bench.farFull(queueLimit: 4)
            _ = try port.next()
            for _ in 0..<10 { try port.receiveFromSockets() }
            #expect(try port.queueCount <= 4)
            withExtendedLifetime(right) {}
        }
    }

    @Test("a deadline that has passed still sends when there is room", arguments: TestTransport.withName)
    func pastDeadline(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1), within: .zero)
            try right.send(MachMessage(id: 2), within: .seconds(-100))
            #expect(try right.trySend(MachMessage(id: 3)))
            #expect(try (0..<3).map { _ in try port.next().id } == [1, 2, 3])
        }
    }

    @Test("a blocked sender wakes when room comes", arguments: TestTransport.withName)
    func roomComes(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, count) = try bench.farFull()
            let sender = runOnThread { try right.send(MachMessage(id: -7)) }
            #expect(!sender.hasEnded)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.next().id == -7)
            try sender.join()
        }
    }

    @Test("blocked senders wake with deadName when the port ends", arguments: TestTransport.allCases)
    func portEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, _) = try bench.farFull()
            let senders = (0..<3).map { _ in
                runOnThread { portError { () throws(PortError) in try right.send(MachMessage()) }?.code }
            }
            if transport == .memory { try right.waitForSenders(3) }
            try port.invalidate()
            for sender in senders { #expect(try sender.join() == .deadName) }
        }
    }

    @Test("blocked senders are served in the order in which they came, also when a newcomer is quicker")
    func inOrder() async throws {
        try await onBench(over: .memory) { bench in
            let (port, right, _) = try bench.full()
            let senders = (Int32(1)...5).map { id in
                defer { port.localPort.waitForSenders(Int(id)) }
                return runOnThread { try right.send(MachMessage(id: id)) }
            }
            #expect(try port.next().id == 0)
            // There is room again, but it belongs to the sender that has waited longest.
            #expect(try !right.trySend(MachMessage(id: 99)))
            #expect(try (0..<5).map { _ in try port.next().id } == [1, 2, 3, 4, 5])
            for sender in senders { try sender.join() }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("a sender that gives up leaves the line, and the next one is served", arguments: [1, 2])
    func givesUp(limit: Int) async throws {
        try await onBench(over: .memory) { bench in
            let (port, right, count) = try bench.full(queueLimit: limit)
            let impatient = runOnThread {
                portError { () throws(PortError) in try right.send(MachMessage(id: 50), within: .milliseconds(1)) }?
                    .code
            }
            #expect(try impatient.join() == .sendTimedOut)
            let patient = runOnThread { try right.send(MachMessage(id: 51)) }
            port.localPort.waitForSenders(1)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.next().id == 51)
            try patient.join()
        }
    }

    @Test(
        "messages in pieces that were begun and given up leave no trace", arguments: [TestTransport.socket, .ring])
    func aborted(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            // No thread reads what is sent to it unless it polls.
            let port = try bench.port(acceptsInBackground: false)
            let right = try bench.right(to: port)
            for id in Int32(0)..<3 {
                let large = MachMessage(id: -1, bytes: pattern(4 << 20))
                #expect(
                    portError { () throws(PortError) in try right.send(large, within: .zero) }?.code == .sendTimedOut)
                let sender = runOnThread { try right.send(MachMessage(id: id, bytes: pattern(100_000))) }
                let message = try port.next()
                #expect(message.id == id)
                #expect(message.bytes == pattern(100_000))
                try sender.join()
            }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a large message is sent at once while the queue has room, whether or not a thread receives",
        arguments: TestTransport.withName)
    func largeAtOnce(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 2)
            let right = try bench.right(to: port)
            for id in Int32(0)..<2 { #expect(try right.trySend(MachMessage(id: id, bytes: pattern(4 << 20)))) }
            #expect(try !right.trySend(MachMessage(id: -1, bytes: pattern(4 << 20))))
            for id in Int32(0)..<2 {
                let message = try port.next()
                #expect(message.id == id && message.bytes == pattern(4 << 20))
            }
        }
    }

    @Test("a port that sends to itself without end still receives from others", arguments: TestTransport.withName)
    func busyPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.busy) { right, port in
                try port.setInvalidationHandler()
                try right.send(MachMessage(id: 1))
                try right.send(MachMessage(id: 2))
                #expect(try port.lines(1) == ["invalidated"])
            }
        }
    }
}

extension LocalPort {
    /// Waits until `count` senders wait for room.
    func waitForSenders(_ count: Int) {
        let deadline = Watchdog.deadline
        while state.withLock({ $0.mailbox.waitingCount }) != count {
            if .now > deadline { return Watchdog.expired("\(count) senders that wait") }
            sched_yield()
        }
    }
}
