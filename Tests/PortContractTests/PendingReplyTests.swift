// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Replies, and other messages, with rights that are first to be announced over a connection without room.
@Suite("messages that wait for another port", .contract) struct PendingReplyTests {
    /// A right to a port whose connection has no room, until the gate opens.
    private static func fullPort(
        _ bench: Bench, until mayEnd: Gate
    ) throws -> (right: SendRight, thread: TestThread<Void>) {
        let (right, thread) = try bench.rawListener { peer in
            mayEnd.wait()
            withExtendedLifetime(peer) {}
        }
        let socket = try #require((right.destination as? RemotePort)?.connection).descriptor
        let packet = [UInt8](repeating: 0, count: 1000)
        while case .sent = try sysSendPacket(
            socket.rawValue, head: PacketHeader.presence.words, body: packet[...])
        {}
        return (right, thread)
    }

    @Test(
        "a reply that waits for another port ends with its request, or its requester: until then its process has it",
        arguments: [false, true])
    func endedReply(isAbandoned: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let mayEnd = Gate("the test is done")
            let (full, thread) = try Self.fullPort(bench, until: mayEnd)
            do {
                let (port, peer, request) = try bench.portWithRequest()
                let sockets = try #require(port.localPort.sockets)
                let owner = PeerID.process(sysProcessID())
                func left() -> Int { sockets.quotas.withLock { $0.allowance(of: owner).descriptors } }
                let before = left()
                try request.reply(MachMessage(id: 2, components: [.right(full)]))
                // What watches for room, and the end that will travel.
                #expect(left() == before - 2)
                #expect(!MachPort.flushReplies(within: .zero))
                if isAbandoned {
                    try peer.send(PacketHeader(kind: .abandoned, asks: 1))
                    _ = try port.tryReceive()
                    #expect(try peer.next()?.kind == .replyDropped)
                } else {
                    sysShutDown(peer.socket.rawValue)
                }
                #expect(MachPort.flushReplies(within: longTimeout))
                while left() < before { yieldThread() }
            }
            mayEnd.open()
            try thread.join()
        }
    }

    @Test("the replies that wait for another port have a limit, and what cannot be encoded is refused at once")
    func replyLimits() async throws {
        try await onBench(over: .socket) { bench in
            let mayEnd = Gate("the test is done")
            let (full, thread) = try Self.fullPort(bench, until: mayEnd)
            do {
                let port = try bench.port()
                let peer = try RawPeer(to: port, on: bench)
                func reply(_ token: UInt64, _ parts: [MachMessage.Component]) throws -> PortError.Code? {
                    try peer.send(MachMessage(id: 1), asks: token)
                    let request = try port.next()
                    return portError { () throws(PortError) in
                        try request.reply(MachMessage(components: [.right(full)] + parts))
                    }?.code
                }
                let last = UInt64(Tuning.pendingReplies)
                for token in 1...last { #expect(try reply(token, []) == nil) }
                #expect(try reply(last + 1, []) == .sendTimedOut)
                #expect(try reply(last + 2, [.receiveRight(bench.port())]) == .notTransferable)
                let null = SharedDescriptor(try sysOpen("/dev/null", .reading))
                let descriptors = [MachMessage.Component](
                    repeating: .descriptor(null), count: MessageLimits.descriptors)
                #expect(try reply(last + 3, descriptors) == .tooManyDescriptors)
                sysShutDown(peer.socket.rawValue)
                #expect(MachPort.flushReplies(within: longTimeout))
            }
            mayEnd.open()
            try thread.join()
        }
    }
}

#if PORT_FAULTS

extension PendingReplyTests {
    @Test("a message with a right waits for room in the connection of that right's port, too")
    func fullSend() async throws {
        try await onBench(over: .socket) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            try port.notifyWhenNoSenders(on: .current) {}
            let (found, there) = (try bench.right(to: port), try bench.right(to: other))
            // The first packet with a read end finds no room, the next one does.
            let (_, hits) = try SystemCallFaults.with([.init(.sendmsg, .fail(EAGAIN))]) {
                try there.send(MachMessage(id: 2, components: [.right(found)]))
            }
            #expect(hits == 1)
            #expect(try other.next().rights.count == 1)
        }
    }

    @Test("a reply passes on a right to a port whose connection is full, as soon as that has room")
    func fullReply() async throws {
        try await onBench(over: .socket) { bench in
            let (home, port) = (try bench.port(), try bench.port())
            try port.notifyWhenNoSenders(on: .current) {}
            let found = try bench.right(to: port)
            let requester = try bench.farSender(to: home)
            try requester.beginRequest(MachMessage(id: 1))
            let request = try home.next()
            let (_, hits) = try SystemCallFaults.with([.init(.sendmsg, .fail(EAGAIN))]) {
                try request.reply(MachMessage(id: 2, components: [.right(found)]))
            }
            #expect(hits == 1)
            #expect(try requester.lines(1).count == 1)
            let sockets = try #require(port.localPort.sockets)
            while sockets.state.withLock({ $0.readEnds.isEmpty }) { #expect(try port.tryReceive()?.id == nil) }
        }
    }
}

#endif
