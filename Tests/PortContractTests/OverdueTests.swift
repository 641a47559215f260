// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Packets that wait for room behind a peer that does not read.
@Suite("overdue packets", .tasks) struct OverdueTests {
    @Test("a task that gives up while the connection is full ends at once; the receiver hears when there is room")
    func abandonment() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            let task = Task { outcome.append(await failure(of: right, MachMessage(id: -1))) }
            let message = try port.next()
            let count = try right.fill()
            task.cancel()
            #expect(outcome.waitUntilCount(1)[0]?.code == .cancelled)
            #expect(!message.isCancelled)
            for id in 0..<count { #expect(try port.next().id == id) }
            // Nothing is sent after it.
            let deadline = Watchdog.deadline
            while !message.isCancelled {
                if .now > deadline { return Watchdog.expired("the news of a requester") }
                sched_yield()
            }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("a thread that gives up while the connection is full ends at once; the news go before the next message")
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

    @Test("a peer for which too much is overdue loses its connection, and whoever waits is told why")
    func limit() throws {
        let (near, far) = try sysPacketSocketPair()
        let connection = try SocketConnection(near, port: nil)
        let text = String(repeating: "x", count: PortError.remoteTextLimit)
        var count = 0
        while !connection.isClosed, count < 10_000 {
            connection.willOweReply(to: UInt64(count))
            connection.failReply(to: UInt64(count), code: 1, text: text)
            count += 1
        }
        #expect(count > SocketConnection.overdueLimit / (text.utf8.count + OverdueCost.packet))
        #expect(count < 10_000)
        let error = portError { () throws(PortError) in try connection.send(MachMessage(), until: .distantPast) }
        #expect(error?.code == .peerNotReading)
        #expect(connection.state.withLock { $0.owedReplies } == 0)
        withExtendedLifetime(far) {}
    }

    @Test("a client that asks and never reads is cut off, and the port goes on")
    func deafClient() async throws {
        try await onBench(over: .socket) { bench in
            let text = String(repeating: "x", count: PortError.remoteTextLimit)
            try bench.serving({ _, message in try? message.replyError(7, text) }) { right, port, _ in
                let peer = try RawPeer(to: port, on: bench)
                let asked = try peer.askUntilCutOff()
                #expect(asked > SocketConnection.overdueLimit / (text.utf8.count + OverdueCost.packet))
                let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                #expect(error?.remoteCode == 7)
            }
        }
    }
}

private enum OverdueCost {
    static let packet = SocketConnection.OverduePacket.cost
}

extension RawPeer {
    /// Sends requests without reading the answers until the connection has ended.
    ///
    /// - Returns: how many were sent.
    fileprivate func askUntilCutOff() throws -> Int {
        for token in 1..<UInt64(100_000) {
            let header = PacketHeader(kind: .message, asks: token)
            var outcome = SendOutcome.wouldBlock
            while outcome == .wouldBlock {
                outcome = try sysSendPacket(socket.rawValue, head: header.encoded, body: [], descriptors: [])
                if outcome == .wouldBlock {
                    let seen = try sysPoll(socket.rawValue, .writable, until: Watchdog.deadline)
                    if seen.isEmpty { throw NothingCame() }
                }
            }
            if outcome == .peerClosed { return Int(token) }
        }
        Issue.record("the connection never ended")
        return 0
    }
}
