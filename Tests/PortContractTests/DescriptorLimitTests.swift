// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if DEBUG

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// What a process without a descriptor left says to its peers.
@Suite("ports without a descriptor left", .contract) struct DescriptorLimitTests {
    typealias Rule = SystemCallFaults.Rule

    @Test("a client that cannot be accepted for want of a descriptor is refused at once, and the next one is served")
    func acceptAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let refused = try bench.right(to: port)
            let (message, hits) = try SystemCallFaults.with([Rule(.accept, .fail(EMFILE))]) { try port.tryReceive() }
            #expect(message?.id == nil)
            #expect(hits == 1)
            let error = portError { () throws(PortError) in _ = try refused.ask(MachMessage()) }
            #expect(error?.code == .descriptorLimit && error?.delivery == .notSent)
            #expect(error.map { "\($0)" }?.contains("the other process") == true)
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
        }
    }

    @Test(
        "a right that cannot be reached for want of a descriptor is no dead name: its message is lost, and that is told"
    )
    func rightAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let elsewhere = try RawListener("\(bench.directory.path)/elsewhere")
            let message = MachMessage(id: 1, components: [.right(SendRight(DeadDestination(elsewhere.address)))])
            #expect(try port.tryReceive()?.id == nil)  // takes the connection
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(message) } }
            while port.core.sockets?.isReadable != true { sched_yield() }
            let (count, hits) = SystemCallFaults.with([Rule(.socket, .fail(EMFILE))]) { port.core.receiveFromSockets() }
            #expect(count == 1 && hits == 1)
            let error = try requester.join()
            #expect(error?.code == .descriptorsLost && error?.delivery == .unread)
            #expect(port.queueCount == 0)
            // The connection lives, and the right arrives when there is a descriptor for it.
            try right.send(message)
            #expect(try port.next().rights.map(\.isDead) == [false])
            // A name that is dead arrives as one.
            try right.send(MachMessage(components: [.right(SendRight(DeadDestination(.nowhere)))]))
            #expect(try port.next().rights.map(\.isDead) == [true])
        }
    }

    @Test("a reply with a right that cannot be reached for want of a descriptor is lost, and the requester is told")
    func rightInReplyAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let elsewhere = try RawListener("\(bench.directory.path)/elsewhere")
            let reply = MachMessage(components: [.right(SendRight(DeadDestination(elsewhere.address)))])
            try bench.serving({ _, message in try? message.reply(reply) }) { right, _, _ in
                _ = try right.request(MachMessage())
                let (error, hits) = SystemCallFaults.with([Rule(.socket, .fail(EMFILE))]) {
                    portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                }
                #expect(hits == 1 && error?.code == .descriptorsLost && error?.delivery == .read)
                #expect(try right.ask(MachMessage()).rights.map(\.isDead) == [false])
            }
        }
    }

    @Test("a reply whose descriptors the kernel does not pass at the moment is lost, and the requester is told why")
    func replyInFlightLimit() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try TestPipe())
            let right = try bench.right(to: port)
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) } }
            let message = try port.next()
            let (error, hits) = SystemCallFaults.with([Rule(.sendmsg, .fail(ETOOMANYREFS))]) {
                portError { () throws(PortError) in
                    try message.reply(MachMessage(components: [.descriptor(pipe.reading)]))
                }
            }
            #expect(hits == 1 && error?.code == .systemCallFailed)
            let told = try requester.join()
            #expect(told?.code == .descriptorsLost && told?.delivery == .read)
        }
    }

    @Test("a request that lies unread when its client is refused for want of a descriptor is told so")
    func unreadAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let refused = try bench.right(to: port)
            let waits = Gate("a requester waits")
            let requester = runOnThread {
                waitsNow(in: .portReply, waits)
                return portError { () throws(PortError) in _ = try refused.ask(MachMessage()) }
            }
            waits.wait()
            let (message, hits) = try SystemCallFaults.with([Rule(.accept, .fail(EMFILE))]) { try port.tryReceive() }
            #expect(message?.id == nil && hits == 1)
            let error = try requester.join()
            #expect(error?.code == .descriptorLimit && error?.delivery == .unread)
        }
    }
}

#endif
