// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import RunLoopCore
import TestSupport
import Testing

@Suite("the count of a port's clients", .contract) struct ClientCountContract {
    @Test(
        "a client that waits to be accepted is a sender", arguments: TestTransport.connected, [false, true])
    func waitsInBacklog(over transport: TestTransport, startsLater: Bool) async throws {
        try await onBench(over: transport) { bench in
            let (worker, notices) = (Worker(), Counter("no-senders notices"))
            let port = try bench.port()
            if startsLater { port.localPort.receiveFromSockets() }  // the sockets are read from the other end then
            var first: FarSender? = try bench.farSender(to: port)
            port.localPort.receiveFromSockets()
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            var second: FarSender? = try bench.farSender(to: port)
            withExtendedLifetime(first) {}
            first = nil
            for _ in 0..<3 { port.localPort.receiveFromSockets() }
            try worker.perform {}
            #expect(notices.value == 0)
            withExtendedLifetime(second) {}
            second = nil
            port.localPort.receiveFromSockets()
            notices.waitUntilCount(1)
            port.invalidate()
            try worker.end()
            #expect(notices.value == 1)
        }
    }

    @Test(
        "a client that waits to be accepted when the notice is asked for is a sender",
        arguments: TestTransport.connected)
    func waitsAtRequest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (worker, notices) = (Worker(), Counter("no-senders notices"))
            let port = try bench.port(acceptsInBackground: false)
            var first: FarSender? = try bench.farSender(to: port)
            while port.localPort.connectionCount == 0 { port.localPort.receiveFromSockets() }
            withExtendedLifetime(first) {}
            first = nil
            while port.localPort.connectionCount > 0 { port.localPort.receiveFromSockets() }
            let peer = try RawPeer(to: port, on: bench)
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            try worker.perform {}
            #expect(notices.value == 0)
            for _ in 0..<3 { port.localPort.receiveFromSockets() }
            try worker.perform {}
            #expect(notices.value == 0 && port.localPort.connectionCount == 1)
            sysShutDown(peer.socket.rawValue)
            port.localPort.receiveFromSockets()
            notices.waitUntilCount(1)
            port.invalidate()
            try worker.end()
        }
    }

    @Test(
        "a right that another process received, of a port that did not count then, counts from its first use on, and serves after the notice"
    )
    func unused() async throws {
        try await onBench(over: .process) { bench in
            let (worker, notices, seen) = (Worker(), Counter("no-senders notices"), Counter("messages"))
            let port = try bench.port { _, _ in seen.increment() }
            try port.schedule(on: worker.loop)
            let answer = try bench.far.order(
                Order(.connect), MachMessage(components: [.right(port.makeSendRight())]))
            var unused: FarSender? = FarSender(bench.far, answer.note.numbers[0])
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            try worker.perform {}
            // No client has connected yet: the port waits for the first.
            #expect(port.localPort.connectionCount == 0 && notices.value == 0)
            do { try bench.farSender(to: port).send(MachMessage()) }
            seen.waitUntilCount(1)
            notices.waitUntilCount(1)
            try unused?.send(MachMessage())
            seen.waitUntilCount(2)
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            try worker.perform {}
            #expect(notices.value == 1)
            unused = nil
            notices.waitUntilCount(2)
            port.invalidate()
            try worker.end()
            #expect(notices.value == 2)
        }
    }
}
