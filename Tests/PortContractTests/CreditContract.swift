// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Flow control: a queue means the same to a sender in whichever process it is.
@Suite("a queue's limit", .contract) struct CreditContract {
    @Test("each message that is received makes room for one more", arguments: TestTransport.withName, [1, 5, 64])
    func oneByOne(over transport: TestTransport, limit: Int) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: limit)
            let right = try bench.right(to: port)
            #expect(try right.fill() == limit)
            for round in Int32(0)..<20 {
                #expect(try port.next().id == (round < limit ? round : 1000 + round - Int32(limit)))
                #expect(try right.trySend(MachMessage(id: 1000 + round)))
                #expect(try !right.trySend(MachMessage(id: -1)))
            }
        }
    }

    @Test("several senders of as many processes find a queue of N full after at most N and one for each")
    func several() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 8)
            let senders = try (0..<3).map { _ in try bench.farSender(to: port) }
            let counts = try senders.map { Int(try $0.fill()) }
            let sum = counts.reduce(0, +)
            #expect(8...8 + senders.count ~= sum, "\(counts)")
            var received = 0
            while try port.tryReceive() != nil { received += 1 }
            #expect(received == sum)
        }
    }

    @Test("the count of a queue has what is on its way, before it is received", arguments: [0, 200_000])
    func onTheirWay(bytes: Int) async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 4)
            let sender = try bench.farSender(to: port)
            try sender.send(MachMessage(id: -1))
            #expect(try port.next().id == -1)
            for round in 0..<20 {
                #expect(try sender.fill(bytes: bytes) == 4)
                #expect(port.queueCount == 4, "\(round)")
                #expect(port.statistics.queueCount == 4)
                for left in [3, 2, 1, 0] {
                    _ = try port.next()
                    #expect(port.queueCount == left)
                }
            }
            #expect(port.queueHighWaterMark == 4)
        }
    }

    @Test("what a client does not use of its grant another one, or a sender of the port's process, gets")
    func unused() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 8)
            let first = try bench.farSender(to: port)
            try first.send(MachMessage(id: 1))
            try first.send(MachMessage(id: 2))
            #expect(try [port.next().id, port.next().id] == [1, 2])
            // It may send eight now, and does not.
            let own = try port.makeSendRight().sendUntilFull(bytes: 0)
            #expect(own == 8)
            withExtendedLifetime(first) {}
        }
    }

    @Test("clients that send by turns ask for room once each, also with a sender of the port's process")
    func turns() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 64)
            let senders = try (0..<5).map { _ in try bench.farSender(to: port) }
            let own = port.makeSendRight()
            var accepted = 0
            for round in Int32(0)..<40 {
                for sender in senders { try sender.send(MachMessage(id: round)) }
                try own.send(MachMessage(id: round))
                for _ in 0...senders.count { #expect(try port.next().id == round) }
                // Each has asked before its second message.
                if round == 1 { accepted = port.localPort.acceptedCount }
            }
            #expect(port.localPort.acceptedCount == accepted)
        }
    }

    @Test("one of very many clients, of which the others are idle, asks for room now and then only")
    func idle() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 64)
            let senders = try (0..<63).map { _ in try bench.farSender(to: port) }
            for round in Int32(0)..<3 {
                for sender in senders {
                    try sender.send(MachMessage(id: round))
                    #expect(try port.next().id == round)
                }
            }
            for sender in senders {
                let before = port.localPort.acceptedCount
                for id in Int32(0)..<30 {
                    try sender.send(MachMessage(id: id))
                    #expect(try port.next().id == id)
                }
                let asked = port.localPort.acceptedCount - before
                #expect(asked <= 10)
            }
            withExtendedLifetime(senders) {}
        }
    }

    @Test("a sender waits at a full queue until one message is received", arguments: TestTransport.withName)
    func blocks(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 5)
            let right = try bench.right(to: port)
            for id in Int32(0)..<5 { try right.send(MachMessage(id: id), within: .zero) }
            #expect(
                portError { () throws(PortError) in
                    try right.send(MachMessage(id: -1), within: .milliseconds(20))
                }?.code == .sendTimedOut)
            let sender = runOnThread { try right.send(MachMessage(id: 5)) }
            #expect(try port.next().id == 0)
            try sender.join()
            #expect(try !right.trySend(MachMessage(id: -1)))
            for id in Int32(1)...5 { #expect(try port.next().id == id) }
        }
    }

    @Test(
        "a sender waits at a full queue also where the port has not read the connection's number",
        arguments: TestTransport.connected)
    func waitsBeforeNumber(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            // The first message needs no grant, and is in the socket before the number.
            let count = try right.fill()
            let sender = runOnThread { try right.send(MachMessage(id: count)) }
            let connection = try #require(right.destination as? RemotePort).reached()
            connection.sender.credit.line.waitUntilHolderBlocks()
            #expect(try !right.trySend(MachMessage(id: -1)))
            for id in 0...count { #expect(try port.next().id == id) }
            try sender.join()
        }
    }

    @Test("a task waits at a full queue until one message is received", arguments: TestTransport.withName)
    func taskBlocks(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 2)
            let right = try bench.right(to: port)
            for id in Int32(0)..<2 { try right.send(MachMessage(id: id)) }
            let sent = Recorder<PortError?>("sent by a task")
            Task {
                do throws(PortError) {
                    try await right.send(MachMessage(id: 2), within: longTimeout)
                    sent.append(nil)
                } catch {
                    sent.append(error)
                }
            }
            for id in Int32(0)..<3 { #expect(try port.next().id == id) }
            #expect(sent.waitUntilCount(1).first == .some(nil))
        }
    }

    @Test("a notice of the port's own process gets the room that another process was granted and does not use")
    func unusedByNotice() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 2)
            let first = try bench.farSender(to: port)
            for id in Int32(0)..<3 {
                try first.send(MachMessage(id: id))
                #expect(try port.next().id == id)
            }
            let own = port.makeSendRight()
            #expect(try own.sendUntilFull(bytes: 0) == 2)
            let mayTry = Gate("a notice of room")
            let worker = Worker()
            try own.notifyWhenSendPossible(on: worker.loop) { _ in mayTry.open() }
            _ = try port.next()
            mayTry.wait()
            #expect(try own.trySend(MachMessage(id: 9)))
            try worker.end()
            withExtendedLifetime(first) {}
        }
    }

    @Test(
        "of what was sent while the receiver sleeps, the policy keeps the newest, whatever the connection holds",
        arguments: TestTransport.withName, [QueuePolicy.dropOldest, .keepLatest])
    func newest(over transport: TestTransport, policy: QueuePolicy) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 4, policy: policy)
            let right = try bench.right(to: port)
            for id in Int32(0)..<500 { #expect(try right.trySend(MachMessage(id: id, bytes: pattern(3000)))) }
            for id in Int32(policy == .keepLatest ? 499 : 496)..<500 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive() == nil)
        }
    }

    @Test("a sender that gives up leaves the room to others", arguments: TestTransport.connected)
    func givesUp(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let (first, second) = (try bench.right(to: port), try bench.right(to: port))
            try first.send(MachMessage(id: 0))
            for _ in 0..<3 {
                #expect(
                    portError { () throws(PortError) in try first.send(MachMessage(id: -1), within: .milliseconds(1)) }?
                        .code == .sendTimedOut)
            }
            #expect(try port.next().id == 0)
            // Its first message needs no room; the second does.
            for id in Int32(1)..<3 {
                try second.send(MachMessage(id: id))
                #expect(try port.next().id == id)
            }
        }
    }

    @Test("trySend and a notice, again and again, send all", arguments: TestTransport.withName)
    func noticeLoop(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 3)
            let right = try bench.right(to: port)
            let worker = Worker()
            for id in Int32(0)..<40 {
                while try !right.trySend(MachMessage(id: id)) {
                    let mayTry = Gate("a notice of room")
                    try right.notifyWhenSendPossible(on: worker.loop) { _ in mayTry.open() }
                    #expect(try port.next().id == max(0, id - 3))
                    mayTry.wait()
                }
            }
            try worker.end()
        }
    }
}

extension LocalPort {
    /// How many connections there were.
    fileprivate var acceptedCount: Int { sockets?.state.withLock { $0.joinCount } ?? 0 }
}
