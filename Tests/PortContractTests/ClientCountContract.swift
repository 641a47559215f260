// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import RunLoopCore
import TestSupport
import Testing

@Suite("the count of a port's clients", .contract) struct ClientCountContract {
    @Test(
        "a client that waits to be accepted is a sender", arguments: TestTransport.connected, [false, true])
    func waitsInBacklog(over transport: TestTransport, startsLater: Bool) async throws {
        try await onBench(over: transport) { bench in
            let (worker, told) = (Worker(), Counter("no-senders notices"))
            let port = try bench.port()
            if startsLater { port.core.receiveFromSockets() }  // the sockets are looked at from the other end then
            var first: FarSender? = try bench.farSender(to: port)
            port.core.receiveFromSockets()
            try port.notifyWhenNoSenders(on: worker.loop) { told.increment() }
            var second: FarSender? = try bench.farSender(to: port)
            withExtendedLifetime(first) {}
            first = nil
            for _ in 0..<3 { port.core.receiveFromSockets() }
            try worker.perform {}
            #expect(told.value == 0)
            withExtendedLifetime(second) {}
            second = nil
            port.core.receiveFromSockets()
            told.waitUntilCount(1)
            port.invalidate()
            try worker.end()
            #expect(told.value == 1)
        }
    }
}
