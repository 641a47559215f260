// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// A connection retains its port, and so does the table of rights, until the port ends: no weak reference is needed.
@Suite("ports that are retained until they end", .contract) struct RetainedPortTests {
    @Test("the helper reports whether there ever was a weak reference")
    func helper() {
        final class Object {}
        let (plain, known) = (Object(), Object())
        weak let reference = known
        #expect(reference === known)
        #expect(!hasSideTable(plain) && hasSideTable(known))
    }

    @Test("there is no weak reference to a port with an address, or to a connection with rings at its end")
    func references() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
            let client = try RingClient(900_001, at: port)
            port.localPort.receiveFromSockets()
            try client.send(1...3)
            for id: Int32 in 1...3 { #expect(try port.next().id == id) }
            #expect(RightsTable.shared.knows(try port.localPort.address()))
            #expect(!hasSideTable(port.localPort) && !hasSideTable(client.connection))
            let members = try #require(port.localPort.sockets).state.withLock { Array($0.members.values) }
            #expect(members.count == 2)
            for member in members { #expect(!hasSideTable(member)) }
            withExtendedLifetime(right) {}
        }
    }

    @Test(
        "a port that has ended goes, though a reply is owed over a connection to it, and so does its address")
    func end() async throws {
        try await onBench(over: .socket) { bench in
            let mine = try bench.port()
            var port: MachPort? = MachPort()
            let address = try #require(port).localPort.address(in: bench.directory)
            let right = SendRight(try #require(try RightsTable.connect(to: address)))
            try right.send(carrying(mine.makeSendOnceRight()))
            var pending = try port?.next().takeReplyRight()
            weak let localPort = port?.localPort
            #expect(RightsTable.shared.ownPort(at: address) === localPort)
            port = nil
            #expect(localPort == nil)
            #expect(!RightsTable.shared.knows(address))
            try pending.take()?.send(MachMessage(id: 2))
            #expect(try mine.next().id == 2)
            withExtendedLifetime(right) {}
        }
    }

    @Test("the right to a port that has ended is the same, wherever it comes from, as long as there is one")
    func equality() async throws {
        try await onBench(over: .socket) { bench in
            let port = MachPort()
            let address = try port.localPort.address(in: bench.directory)
            var own: SendRight? = port.makeSendRight()
            port.invalidate()
            #expect(RightsTable.shared.ownPort(at: address) == nil)
            #expect(RightsTable.shared.right(receivedAt: address) == own)
            own = nil
            #expect(RightsTable.shared.knows(address))
            withExtendedLifetime(port) {}
        }
    }
}
