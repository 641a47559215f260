// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Packets that wait for room behind a peer that does not read.
@Suite("the send backlog", .tasks) struct SendBacklogTests {
    @Test("a task that gives up while the connection is full ends at once; the receiver learns it when there is room")
    func abandonment() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            let task = Task { outcome.append(await failure(of: right, MachMessage(id: -1))) }
            let message = try port.next()
            let count = try right.fill()
            task.cancel()
            #expect(try #require(outcome.waitUntilCount(1).first)?.code == .cancelled)
            #expect(!message.isCancelled)
            for id in 0..<count { #expect(try port.next().id == id) }
            // Nothing is sent after it.
            let deadline = Watchdog.deadline
            while !message.isCancelled {
                if .now > deadline { return Watchdog.expired("the cancellation of a request") }
                sched_yield()
            }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("a thread that gives up while the connection is full ends at once; the notice precedes the next message")
    func abandonmentByThread() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            let error = portError { () throws(PortError) in
                // The connection is filled after the request was sent, before its time is up.
                ThreadRunLoop.current.perform(in: [.default]) { _ = try? right.fill() }
                _ = try right.request(MachMessage(id: -1), replyLimit: .milliseconds(1), mode: .default)
            }
            #expect(error?.code == .replyTimedOut)
            let message = try port.next()
            while try port.tryReceive() != nil {}
            try right.send(MachMessage(id: 5))
            #expect(try port.next().id == 5)
            #expect(message.isCancelled)
        }
    }

    @Test("a peer with too large a backlog loses its connection, and the threads that wait learn why")
    func limit() throws {
        let (near, far) = try sysPacketSocketPair()
        let connection = try SocketConnection(near, port: nil)
        let text = String(repeating: "x", count: PortError.remoteTextLimit)
        var count = 0
        while !connection.isClosed, count < 10_000 {
            connection.willReply(to: UInt64(count))
            connection.failReply(to: UInt64(count), code: 1, text: text)
            count += 1
        }
        #expect(count > PacketSender.backlogLimit / (text.utf8.count + SendBacklog.packetCost))
        #expect(count < 10_000)
        let error = portError { () throws(PortError) in try connection.send(MachMessage(), until: .never) }
        #expect(error?.code == .peerNotReading)
        #expect(connection.state.withLock { $0.requests.hasUnanswered } == false)
        withExtendedLifetime(far) {}
    }

    @Test(
        "a client that asks and never reads is not read either, others are served; once it reads it gets all, in order")
    func clientReadsNothing() async throws {
        try await onBench(over: .socket) { bench in
            let served = Counter()
            try bench.serving({ _, message in
                served.increment()
                try? message.reply(MachMessage(id: message.id, bytes: pattern(3_000)))
            }) { right, port, _ in
                let peer = try RawPeer(to: port, on: bench)
                let asked = try peer.askUntilFull(while: { _ = try right.ask(MachMessage(id: -1)) })
                let others = served.value
                for _ in 0..<10 { #expect(try right.ask(MachMessage(id: -1)).id == -1) }
                // No further request of the client that does not read was handled.
                #expect(served.value == others + 10)
                for token in 1...UInt64(asked) {
                    let reply = try peer.next()
                    #expect(reply?.answers == token && reply?.messageID == Int32(token))
                }
                #expect(try peer.isSilent)
            }
        }
    }

    @Test("a reply that finds no room blocks no thread, and no loop spins; what is sent after it is not read before")
    func pause() async throws {
        try await onBench(over: .socket) { bench in
            let (port, peer, message) = try bench.portWithRequest()
            try peer.send(MachMessage(id: 2))
            let large = pattern(1 << 20)
            try message.reply(MachMessage(bytes: large), within: .zero)
            #expect(try port.tryReceive() == nil)
            let sockets = try #require(port.localPort.sockets)
            #expect(sockets.epoll.wait(until: .distantPast).isEmpty)
            // No thread reads from the port, but the whole reply arrives.
            #expect(try peer.readMessage() == large.count + 8)
            #expect(try port.next().id == 2)
        }
    }

    @Test("a client is read again though its replies are sent the moment after a thread found no room for them")
    func sentMeanwhile() async throws {
        try await onBench(over: .socket) { bench in
            let (port, peer, message) = try bench.portWithRequest()
            try peer.send(MachMessage(id: 2))
            let sockets = try #require(port.localPort.sockets)
            let connection = try #require(sockets.state.withLock { $0.members.values.first })
            connection.sender.backlog.withLock { $0.isWatched = true }  // the I/O thread does not touch it
            let large = pattern(1 << 20)
            try message.reply(MachMessage(bytes: large), within: .zero)
            #expect(connection.isAwaitingRoom)
            #expect(try port.tryReceive() == nil)
            let reader = runOnThread { try peer.readMessage() }
            // One thread sends the backlog; before it says so, another acts on what it has seen: no room.
            #expect(connection.sender.lock.tryLock() == true)
            while try !connection.sender.sendBacklog(over: connection) { sched_yield() }
            connection.sender.lock.unlock()
            connection.sender.awaitRoom(over: connection)
            connection.sender.resumeReading(over: connection)
            #expect(try port.tryReceive()?.id == 2)
            #expect(try reader.join() == large.count + 8)
        }
    }

    @Test("a client is read again though its replies are sent together with the next one")
    func sentWithNext() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            for id in Int32(1)...2 { try peer.send(MachMessage(id: id), asks: UInt64(id)) }
            let messages = [try port.next(), try port.next()]
            try peer.send(MachMessage(id: 3))
            let sockets = try #require(port.localPort.sockets)
            let connection = try #require(sockets.state.withLock { $0.members.values.first })
            connection.sender.backlog.withLock { $0.isWatched = true }  // the I/O thread does not touch it
            // More than the socket takes, but not twice as much.
            try messages[0].reply(MachMessage(bytes: pattern(300_000)), within: .zero)
            #expect(connection.isAwaitingRoom)
            #expect(try port.tryReceive() == nil)
            while try !peer.isSilent { _ = try peer.next() }
            try messages[1].reply(MachMessage(id: 2), within: .zero)
            #expect(connection.sender.backlog.withLock { $0.isEmpty })
            #expect(try port.tryReceive()?.id == 3)
        }
    }

    @Test("the end of a client that does not read is noticed, and what it had sent before is received")
    func end() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let message = try {
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(MachMessage(id: 1), asks: 1)
                let message = try port.next()
                try message.reply(MachMessage(bytes: pattern(1 << 20)))
                try peer.send(MachMessage(id: 2), asks: 2)
                #expect(try port.tryReceive() == nil)
                return message
            }()
            let last = try port.next()
            #expect(last.id == 2)
            while port.localPort.connectionCount > 0 { #expect(try port.tryReceive() == nil) }
            #expect(last.isCancelled)
            #expect(portError { () throws(PortError) in try last.reply(MachMessage()) }?.code == .deadName)
            withExtendedLifetime(message) {}
        }
    }

    @Test("a port that ends while a reply waits for room still sends it")
    func portEnd() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 1)
            let large = pattern(1 << 20)
            try port.next().reply(MachMessage(bytes: large))
            port.invalidate()
            #expect(try peer.readMessage() == large.count + 8)
            var next = try peer.next()
            if next?.kind == .portEnded { next = try peer.next() }
            #expect(next == nil)
        }
    }

    @Test("replies beyond the limit of what may be unread end the connection: the one that is refused throws")
    func replyLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            for token in UInt64(1)...2 { try peer.send(MachMessage(id: Int32(token)), asks: token) }
            let messages = [try port.next(), try port.next()]
            // As if the first were as large as that.
            try messages[0].reply(MachMessage(bytes: pattern(1 << 20)))
            let connection = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            connection.sender.backlog.withLock { $0.size += PacketSender.replyBacklogLimit }
            let error = portError { () throws(PortError) in try messages[1].reply(MachMessage()) }
            #expect(error?.code == .deadName)
            #expect(connection.isClosed)
        }
    }
}

extension RawPeer {
    /// Sends requests without reading the answers until the port reads no more of them.
    ///
    /// - Parameter others: what another client does meanwhile; by then the port has read what it reads.
    /// - Returns: how many were sent.
    /// - Throws: what `others` throws.
    fileprivate func askUntilFull(while others: () throws -> Void) throws -> Int {
        var refusals = 0
        var token: UInt64 = 1
        while refusals < 20, token < 100_000 {
            let header = PacketHeader(kind: .message, messageID: Int32(token), asks: token)
            if try send(header) {
                (token, refusals) = (token + 1, 0)
            } else {
                refusals += 1
                try others()
            }
        }
        #expect(token < 100_000, "the connection never became full")
        return Int(token) - 1
    }

    /// Whether there is nothing to read.
    fileprivate var isSilent: Bool {
        get throws { try sysPoll(socket.rawValue, .readable, until: .distantPast).isEmpty }
    }
}
