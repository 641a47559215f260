// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import TestSupport
import Testing

@Suite("rights", .contract) struct RightContract {
    @Test("a right in a message is the port's own right, equal and hashable", arguments: TestTransport.allCases)
    func identity(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.farPort(), try bench.port())
            let right = try bench.right(to: port)
            let sent = other.makeSendRight()
            try right.send(MachMessage(components: [.right(sent), .bytes([1]), .right(sent), .right(sent)]))
            try right.send(MachMessage(components: [.right(sent)]))
            let messages = [try port.next(), try port.next()]
            let received = messages.flatMap(\.rights)
            #expect(received.count == 4)
            #expect(Set(received) == [sent])
            #expect(Set(received + [try port.makeSendRight()]).count == 2)
            try messages[1].send(MachMessage(id: 9), over: 0)
            #expect(try other.next().id == 9)
        }
    }

    @Test("a right to the receiver's own port comes back as that", arguments: TestTransport.allCases)
    func ownPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.send(MachMessage(components: [.right(right)], replyPort: right))
            let message = try port.next()
            let own = try port.makeSendRight()
            #expect(message.rights == [own])
            #expect(message.replyPort == own)
            try message.send(MachMessage(id: 3), over: 0)
            #expect(try port.next().id == 3)
        }
    }

    @Test("rights to one port that died on the way are equal", arguments: TestTransport.inProcess)
    func deadOnTheWay(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let address = PortAddress(path: "/nobody/is/there")
            defer { #expect(!RightsTable.shared.knows(address)) }
            try deadOnTheWay(bench, to: address)
        }
    }

    private func deadOnTheWay(_ bench: Bench, to address: PortAddress) throws {
        let (port, dead) = (try bench.port(), try bench.port())
        let right = try bench.right(to: port)
        let mine = dead.makeSendRight()
        let nobody = SendRight(DeadPort(address))
        try right.send(MachMessage(components: [.right(mine), .right(nobody), .right(mine), .right(nobody)]))
        try right.send(MachMessage(components: [.right(nobody)]))
        dead.invalidate()
        let (first, second) = (try port.next(), try port.next())
        #expect(first.rights.map(\.isDead) == [true, true, true, true])
        #expect(first.rights[0] == mine && first.rights[2] == mine)
        #expect(first.rights[1] == first.rights[3] && first.rights[1] == second.rights[0])
        #expect(RightsTable.shared.knows(address) == (bench.transport != .memory))
    }

    @Test("a right to a dead port arrives as a dead name", arguments: TestTransport.allCases)
    func deadRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, dead) = (try bench.farPort(), try bench.farPort())
            let right = try bench.right(to: port)
            let deadRight = try bench.right(to: dead)
            try dead.invalidate()
            #expect(deadRight.isDead)
            try right.send(MachMessage(components: [.right(deadRight)], replyPort: deadRight))
            let message = try port.next()
            #expect(message.rights.count == 1)
            #expect(message.rights.first?.isDead == true)
            #expect(message.replyPort?.isDead == true)
            #expect(
                portError { () throws(PortError) in try message.send(MachMessage(), over: 0) }?.code == .deadName)
        }
    }

    @Test(
        "a right to a port of this process that has ended can still be sent, and is a dead name",
        arguments: TestTransport.allCases)
    func ownDeadRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            for dead in [try bench.port(), MachPort()] {
                let deadRight = dead.makeSendRight()
                dead.invalidate()
                try right.send(MachMessage(components: [.right(deadRight)]))
                #expect(try port.next().rights.map(\.isDead) == [true])
            }
        }
    }

    @Test("a right may be passed on to a third party, which can use it", arguments: TestTransport.allCases)
    func thirdParty(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (first, second, target) = (try bench.farPort(), try bench.farPort(), try bench.port())
            try bench.right(to: first).send(MachMessage(components: [.right(bench.right(to: target))]))
            let passed = try #require(try first.next().rights.first)
            try bench.right(to: second).send(MachMessage(components: [.right(passed)]))
            let last = try second.next()
            try last.send(MachMessage(id: 5), over: 0)
            #expect(try target.next().id == 5)
        }
    }

    @Test("the reply port arrives and answers", arguments: TestTransport.allCases)
    func replyPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, mine) = (try bench.farPort(), try bench.port())
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1, replyPort: bench.right(to: mine)))
            try right.send(MachMessage(id: 2))
            let message = try port.next()
            try message.send(MachMessage(id: 11))
            try message.send(MachMessage(id: 12))
            #expect(try [mine.next().id, mine.next().id] == [11, 12])
            #expect(try port.next().replyPort == nil)
        }
    }

    @Test(
        "a right is dead when its port is invalidated, and sends throw deadName and deliver nothing",
        arguments: TestTransport.allCases)
    func death(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            #expect(!right.isDead)
            try port.invalidate()
            #expect(right.isDead)
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .deadName)
            #expect(portError { () throws(PortError) in _ = try right.trySend(MachMessage()) }?.code == .deadName)
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .deadName)
            #expect(right.isDead)
        }
    }

    @Test("the last reference to an unscheduled port ends it", arguments: TestTransport.allCases)
    func lastReference(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            var port: FarPort? = try bench.farPort()
            let right = try bench.right(to: #require(port))
            try right.send(MachMessage())
            #expect(!right.isDead)
            port = nil
            #expect(right.isDead)
        }
    }
}
