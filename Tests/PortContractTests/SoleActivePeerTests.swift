// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("a peer that talks alone", .contract) struct SoleActivePeerTests {
    private static func connections(_ bench: Bench, _ count: Int) throws -> [SocketConnection] {
        try (0..<count).map { _ in
            let right = try bench.right(to: bench.port())
            return try #require(right.destination as? RemotePort).reached()
        }
    }

    @Test("a peer found active alone twice in a row is polled alone, seven times in a row")
    func alone() async throws {
        try await onBench(over: .socket) { bench in
            let talker = try Self.connections(bench, 1)[0]
            var lone = SoleActivePeer()
            #expect(lone.next() == nil)
            lone.didPoll(found: talker)
            #expect(lone.next() == nil)
            lone.didPoll(found: talker)
            for _ in 0..<2 {
                for _ in 0..<Tuning.solePollLimit { #expect(lone.next() === talker) }
                #expect(lone.next() == nil)
                lone.didPoll(found: talker)
            }
        }
    }

    @Test("a peer that is not there, is no longer watched, or is active beside others is polled with all")
    func notAlone() async throws {
        try await onBench(over: .socket) { bench in
            let both = try Self.connections(bench, 2)
            let ends: [(inout SoleActivePeer) -> Void] = [
                { $0.didFindNothing() }, { $0.forget(both[0]) }, { $0.didPoll(found: nil) },
                { $0.didPoll(found: both[1]) },
            ]
            for end in ends {
                var lone = SoleActivePeer()
                for _ in 0..<2 { lone.didPoll(found: both[0]) }
                lone.forget(both[1])
                #expect(lone.next() === both[0])
                end(&lone)
                #expect(lone.next() == nil)
            }
        }
    }

    @Test("beside a peer that sends all the time, another is read within eight messages")
    func another() async throws {
        try await onBench(over: .socket) { bench in
            let received = Mutex<[Int32]>([])
            let port = try bench.port { _, message in
                received.withLock { $0.append(message.id) }
                ThreadRunLoop.current.stop()
            }
            try port.schedule()
            let peers = try [RawPeer(to: port, on: bench), RawPeer(to: port, on: bench)]
            for round in Int32(0)..<20 {
                if round == 9 { try peers[1].send(MachMessage(id: 100)) }
                try peers[0].send(MachMessage(id: round))
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            }
            while received.withLock({ $0.count }) < 21 {
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            }
            let order = received.withLock { $0 }
            #expect(order.filter { $0 < 100 } == Array(0..<20))
            let position = try #require(order.firstIndex(of: 100))
            #expect(position >= 9 && position <= 9 + Tuning.solePollLimit + 2, "\(order)")
            port.invalidate()
        }
    }

    @Test("requesters get each answer, through memory and a socket at once: a loop that sleeps misses none")
    func bothWays() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving({ _, message in try? message.reply(message) }) { right, port, worker in
                worker.loop.waitStrategy = .blocking
                let near = port.makeSendRight()
                let threads = [right, near].map { right in
                    runOnThread {
                        for id in Int32(0)..<1_000 {
                            let answer = try right.ask(MachMessage(id: id))
                            #expect(answer.id == id)
                        }
                    }
                }
                for thread in threads { try thread.join() }
            }
        }
    }

    @Test("a peer that sends one message and goes is not retained")
    func goes() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port { _, _ in ThreadRunLoop.current.stop() }
            try port.schedule()
            for id in Int32(0)..<4 {
                weak var connection: SocketConnection?
                do {
                    let peer = try RawPeer(to: port, on: bench)
                    for _ in 0..<3 {
                        try peer.send(MachMessage(id: id))
                        #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
                    }
                    connection = port.localPort.sockets?.state.withLock { $0.members.values.first }
                    #expect(connection != nil)
                    try peer.send(MachMessage(id: id))
                }
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
                while port.localPort.connectionCount > 0 { port.localPort.receiveFromSockets() }
                waitForIOThread()  // it has waited for what the peer sends first
                #expect(connection == nil)
            }
            port.invalidate()
        }
    }
}

@Suite("a policy that asks its own port", .contract) struct AskingPolicyTests {
    @Test("is answered by a nested run of the port's loop, also after a client was the sole active peer")
    func nested() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port { _, message in
                try? message.reply(message)
                if message.id < 4 { ThreadRunLoop.current.stop() }
            }
            try port.schedule()
            let near = port.makeSendRight()
            let answers = Recorder<Int32>("answers to the policy")
            port.setPeerPolicy(
                PeerPolicy { _ in
                    if let answer = try? near.ask(MachMessage(id: 4), mode: .default) { answers.append(answer.id) }
                    return true
                })
            let first = try RawPeer(to: port, on: bench)
            for id in Int32(1)...3 {
                try first.send(MachMessage(id: id))
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            }
            let second = try RawPeer(to: port, on: bench)
            try second.send(MachMessage(id: 1))
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            #expect(answers.elements == [4, 4])
            port.invalidate()
        }
    }

    @Test("is answered by the port's other loop")
    func policyAsks() async throws {
        try await onBench(over: .socket) { bench in
            let (first, second) = (Worker("first"), Worker("second"))
            let port = try bench.port { _, message in try? message.reply(message) }
            let near = port.makeSendRight()
            let answer = Recorder<Result<Int32, PortError>>("answers to the policy")
            // The loop that reads the client makes the request. It is the only one: the other loop has to be woken for
            // the request.
            port.setPeerPolicy(
                PeerPolicy { _ in
                    answer.append(Result { () throws(PortError) in try near.ask(MachMessage(id: 4)).id })
                    return true
                })
            for worker in [first, second] { try worker.perform { try port.schedule() } }
            for worker in [first, second] { worker.loop.waitStrategy = .blocking }
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            answer.waitUntilCount(1)
            #expect(try answer.elements.first?.get() == 4)
            port.invalidate()
            for worker in [first, second] { try worker.end() }
        }
    }
}
