// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort
import TestSupport
import Testing

/// What holds for a port or a right of a process that ended without a word. A kill leaves the files of its sockets, so
/// these may stay in the directory.
@Suite("the far side is killed", .contract) struct KilledProcessContract {
    /// Runs a test whose far side is killed.
    private func onBench(_ body: @escaping @Sendable (Bench) throws -> Void) async throws {
        try await PortContractTests.onBench(over: .process, endsAs: .signalled(9), body)
    }

    @Test("its ports are dead: notices are delivered, and senders that wait for room wake")
    func deadPorts() async throws {
        try await onBench { bench in
            let (_, right, _) = try bench.farFull()
            let (worker, notified) = (Worker(), Counter("death notices"))
            try right.notifyWhenDead(on: worker.loop) { _ in notified.increment() }
            try right.notifyWhenSendPossible(on: worker.loop) { if $0 == .deadName { notified.increment() } }
            let senders = (0..<2).map { _ in
                runOnThread { portError { () throws(PortError) in try right.send(MachMessage()) }?.code }
            }
            try bench.killFarSide()
            for sender in senders { #expect(try sender.join() == .deadName) }
            notified.waitUntilCount(2)
            #expect(right.isDead)
            try worker.end()
        }
    }

    @Test("its requests are cancelled, and the replies that it owes are given up", arguments: [false, true])
    func requests(isRead: Bool) async throws {
        try await onBench { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let mine = try bench.port()
            var message: MachMessage? = carrying(mine.makeSendOnceRight())
            if let message { try right.send(message) }
            message = nil
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) } }
            let received = isRead ? [try port.next(), try port.next()] : []
            if !isRead { while try port.queueCount < 2 { try port.receiveFromSockets() } }
            try bench.killFarSide()
            let error = try requester.join()
            #expect(error?.code == .peerDied && error?.delivery == .unknown)
            #expect(try mine.next().id == MachMessage.sendOnceNotification)
            withExtendedLifetime(received) {}
        }
    }

    @Test("a port learns that its requester has gone, and that it has no senders")
    func senders() async throws {
        try await onBench { bench in
            let (retained, notified, worker) = (Recorder<MachMessage>("messages"), Counter("notices"), Worker())
            let port = try bench.port { _, message in
                message.setCancellationHandler { notified.increment() }
                retained.append(message)
            }
            try port.schedule(on: worker.loop)
            let sender = try bench.farSender(to: port)
            try sender.beginRequest(MachMessage(id: 1))
            retained.waitUntilCount(1)
            try port.notifyWhenNoSenders(on: worker.loop) { notified.increment() }
            #expect(notified.value == 0)
            try bench.killFarSide()
            notified.waitUntilCount(2)
            #expect(retained.elements[0].isCancelled)
            #expect(portError { () throws(PortError) in try retained.elements[0].reply(MachMessage()) } != nil)
            port.invalidate()
            try worker.end()
        }
    }

    @Test("what it had sent before it was killed is received, in order and whole")
    func sentBefore() async throws {
        try await onBench { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            let count = try sender.fill(bytes: 3000)
            try bench.killFarSide()
            for id in 0..<count {
                let message = try port.next()
                #expect(message.id == id && message.bytes.count == 3000)
            }
            #expect(try port.tryReceive()?.id == nil)
        }
    }
}
