// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What is different over rings when the system refuses: a message is in memory before the first system call, and a
// wake-up that fails must not leave it unseen. What is the same is in FaultTests, over both.

#if PORT_FAULTS

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("forced faults over rings", .rings, .contract) struct RingFaultTests {
    typealias Rule = SystemCallFaults.Rule

    /// A port whose consumer waits for a wake-up, and a right to it by a ring that has been used.
    private func quiet(on bench: Bench) throws -> (port: MachPort, right: SendRight, connection: SocketConnection) {
        let port = try bench.port()
        let right = try bench.right(to: port)
        try right.send(MachMessage(id: -1))
        #expect(try port.next().id == -1)
        #expect(try port.tryReceive()?.id == nil)
        let connection = try #require(right.destination as? RemotePort).reached()
        connection.sender.credit.setUnlimited()  // the packets below are messages alone
        let isAsleep = connection.sender.channel.path.withLock { $0.usesRing && $0.isConsumerAsleep }
        #expect(isAsleep)
        return (port, right, connection)
    }

    @Test(
        "a wake-up for which the kernel has no memory, or no room, for a moment is sent again",
        arguments: [ENOBUFS, ENOMEM, EAGAIN])
    func wakeUpSentAgain(code: CInt) async throws {
        try await onBench(over: .ring) { bench in
            let (port, right, _) = try quiet(on: bench)
            let (_, hits) = try SystemCallFaults.with([Rule(.sendmsg, .fail(code), times: 3)]) {
                try right.send(MachMessage(id: 1))
            }
            #expect(hits == 3)
            #expect(try port.next().id == 1)
        }
    }

    @Test(
        "a wake-up that the kernel refuses ends the connection: what was sent is read, and a requester learns why",
        arguments: [ENOBUFS, ENOMEM])
    func wakeUpRefused(code: CInt) async throws {
        try await onBench(over: .ring) { bench in
            let (port, right, connection) = try quiet(on: bench)
            let (error, _) = SystemCallFaults.with([Rule(.sendmsg, .fail(code), times: .max)]) {
                portError { () throws(PortError) in _ = try right.ask(MachMessage(id: 2)) }
            }
            #expect(error?.code == .systemCallFailed)
            #expect(error?.systemError == SystemError(code))
            #expect(connection.isClosed)
            let later = portError { () throws(PortError) in try right.send(MachMessage(id: 3)) }
            #expect(later?.code == .systemCallFailed)
            #expect(try port.tryReceive()?.id == 2)
            // Another connection finds the port as it was.
            try bench.right(to: port).send(MachMessage(id: 4))
            #expect(try port.next().id == 4)
        }
    }

    @Test("a reply whose wake-up is refused for a moment arrives", arguments: [ENOBUFS, EAGAIN])
    func reply(code: CInt) async throws {
        try await onBench(over: .ring) { bench in
            let hits = Recorder<Int>()
            try bench.serving({ _, message in
                // The first switches to the ring; or the second, where the port's thread was late to agree on it.
                if message.id < 2 { return (try? message.reply(MachMessage(id: message.id))) ?? () }
                // A requester that is parked is woken by no packet, unless the kernel refuses what wakes it.
                let faults = [Rule(.shutdown, .fail(EPERM), times: .max), Rule(.sendmsg, .fail(code), times: 3)]
                let (_, calls) = SystemCallFaults.counting(with: faults) {
                    try? message.reply(MachMessage(id: message.id))
                }
                hits.append(calls[.sendmsg] ?? 0)
            }) { right, _, _ in
                ThreadRunLoop.current.waitStrategy = .blocking
                for id in Int32(0)...11 {
                    let reply = try right.ask(MachMessage(id: id))
                    #expect(reply.id == id)
                }
            }
            let counts = hits.waitUntilCount(10)
            #expect(counts.count == 10)
            #expect(counts.reduce(0, +) > 0)
        }
    }

    @Test(
        "the packet that switches to a ring is refused: the send fails with its number, later ones succeed",
        arguments: [ENOBUFS, ENOMEM])
    func pathSwitch(code: CInt) async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let (error, hits) = SystemCallFaults.with([Rule(.sendmsg, .fail(code))]) {
                portError { () throws(PortError) in try right.send(MachMessage(id: -1)) }
            }
            #expect(hits == 1)
            #expect(error?.code == .systemCallFailed)
            #expect(error?.systemError == SystemError(code))
            for id in Int32(1)...3 { try right.send(MachMessage(id: id)) }
            for id in Int32(1)...3 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a packet that the kernel does not give at once, at whichever poll, is read later: nothing is lost",
        arguments: [EAGAIN, ENOBUFS], 0..<6)
    func laterPoll(code: CInt, skipping: Int) async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            var ids: [Int32] = []
            try right.send(MachMessage(id: 1))
            let (_, hits) = try SystemCallFaults.with([Rule(.recvmsg, .fail(code), skipping: skipping)]) {
                for id in Int32(2)...6 {
                    for _ in 0..<2 { if let message = try port.tryReceive() { ids.append(message.id) } }
                    try right.send(MachMessage(id: id))
                }
            }
            #expect(hits == 1)
            while ids.count < 6 { ids.append(try port.next().id) }
            #expect(ids == [1, 2, 3, 4, 5, 6])
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a message of many pieces that is broken off because no memory is left is not delivered, and can be sent again",
        arguments: 0..<6)
    func pieces(skipping: Int) async throws {
        try await onBench(over: .ring) { bench in
            let (port, right, _) = try quiet(on: bench)
            let sender = runOnThread {
                SystemCallFaults.with([Rule(.sendmsg, .fail(ENOBUFS), times: 2, skipping: skipping)]) {
                    for id in Int32(1)...3 {
                        let message = MachMessage(id: id, bytes: pattern(900_000))
                        var error = portError { () throws(PortError) in try right.send(message) }
                        // It is refused twice.
                        for _ in 0..<2 where error != nil {
                            #expect(error?.systemError == SystemError(ENOBUFS))
                            error = portError { () throws(PortError) in try right.send(message) }
                        }
                        #expect(error == nil)
                    }
                }
            }
            for id in Int32(1)...3 {
                let message = try port.next()
                #expect(message.id == id && message.bytes == pattern(900_000))
            }
            _ = try sender.join()
            #expect(try port.tryReceive()?.id == nil)
        }
    }
}

#endif
