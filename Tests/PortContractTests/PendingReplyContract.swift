// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("the end of a port that owes replies", .contract) struct PendingReplyContract {
    @Test("a dead-name notice does not wait for the reply, which still comes", arguments: TestTransport.allCases)
    func deadName(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keep) { right, port in
                let (receiver, notices) = (Worker("notices"), Counter("dead-name notices"))
                try right.notifyWhenDead(on: receiver.loop) { _ in notices.increment() }
                let asker = runOnThread { try right.ask(MachMessage(id: 1)).id }
                #expect(try port.lines(1) == ["retained 1"])
                #expect(!right.isDead && notices.value == 0)
                try port.invalidate()
                notices.waitUntilCount(1)
                #expect(right.isDead)
                #expect(portError { () throws(PortError) in _ = try right.trySend(MachMessage()) }?.code == .deadName)
                try right.notifyWhenDead(on: receiver.loop) { _ in notices.increment() }
                notices.waitUntilCount(2)
                try port.replyRetained(MachMessage(id: 7))
                #expect(try asker.join() == 7)
                try receiver.perform {}
                try receiver.end()
                #expect(notices.value == 2)
            }
        }
    }

    @Test("a query whether it is dead is answered though no thread receives", arguments: TestTransport.allCases)
    func isDead(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, mine) = (try bench.farPort(), MachPort())
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1, replyTo: mine))
            var retained: FarMessage? = try port.next()
            try port.invalidate()
            #expect(right.isDead)
            withExtendedLifetime(retained) {}
            retained = nil
            #expect(try mine.next().id == MachMessage.sendOnceNotification)
        }
    }

    @Test("a send that fails delivers the death notices", arguments: TestTransport.allCases)
    func failedSend(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, mine, notices) = (try bench.farPort(), MachPort(), Counter("dead-name notices"))
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1, replyTo: mine))
            let retained = try port.next()
            try right.notifyWhenDead { _ in notices.increment() }
            try port.invalidate()
            #expect(portError { () throws(PortError) in _ = try right.trySend(MachMessage()) }?.code == .deadName)
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            ThreadRunLoop.current.run(for: .zero)
            #expect(notices.value == 1)
            idle.invalidate()
            withExtendedLifetime(retained) {}
        }
    }

    @Test("a sender that waits for room learns that the port is dead", arguments: TestTransport.allCases)
    func room(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, mine) = (try bench.farPort(queueLimit: 1), MachPort())
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1, replyTo: mine))
            let retained = try port.next()
            _ = try right.fill(bytes: 3000)
            let (worker, notices) = (Worker(), Recorder<SendPossibility>("notices"))
            try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) }
            try worker.perform {}
            #expect(notices.count == 0)
            try port.invalidate()
            #expect(notices.waitUntilCount(1) == [.deadName])
            try worker.end()
            withExtendedLifetime(retained) {}
        }
    }

    @Test("requests behind the one that ended the port are answered at once, whichever thread reads them")
    func unreadRequests() async throws {
        try await onBench(over: .socket) { bench in
            let box = Box<MachPort>()
            let port = MachPort(queueLimit: 8, handler: nil) { message in
                if message.id == 1 { box.value.withLock { $0 }?.invalidate() }
                return false
            }
            box.value.withLock { $0 = port }
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 0), asks: 1)
            let retained = try port.next()
            try peer.send(MachMessage(id: 1), asks: 2)
            try peer.send(MachMessage(id: 2), asks: 3)
            #expect(!retained.isCancelled)  // it reads what has come
            #expect(!port.isValid)
            var dropped: Set<UInt64> = []
            while dropped != [2, 3] {
                let header = try #require(try peer.next())
                if header.kind == .replyDropped { dropped.insert(header.answers) }
            }
            box.value.withLock { $0 = nil }
            withExtendedLifetime(retained) {}
        }
    }
}
