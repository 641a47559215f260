// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// The connections of these tests come from one process, their own, which counts like any other.
@Suite("what one process may occupy at a port", .contract) struct PeerLimitsTests {
    private static let block = pattern(10_000)

    @Test("the newest connection above the limit is refused, and may come back when another has gone")
    func connections() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.connections = 2 }
            let first = try RawPeer(to: port, on: bench)
            try first.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
            try {
                let second = try RawPeer(to: port, on: bench)
                let right = try bench.right(to: port)
                let late = try RawPeer(to: port, on: bench)
                #expect(try port.tryReceive() == nil)
                #expect(port.localPort.connectionCount == 2)
                let refusal = try late.next()
                #expect(refusal?.kind == .refused)
                #expect(refusal?.messageID == Int32(PortError.Code.tooManyConnections.rawValue))
                #expect(try late.next() == nil)
                let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                #expect(error?.code == .tooManyConnections)
                try second.send(MachMessage(id: 2))
                #expect(try port.next().id == 2)
            }()
            #expect(try port.tryReceive() == nil)
            let next = try RawPeer(to: port, on: bench)
            try next.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
        }
    }

    @Test("above the limit in bytes nothing more is read, and no loop spins; receiving resumes it, in order")
    func bytes() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 15_000 }
            let peers = [try RawPeer(to: port, on: bench), try RawPeer(to: port, on: bench)]
            for id in Int32(0)..<5 { try peers[0].send(MachMessage(id: id, bytes: Self.block)) }
            port.localPort.receiveFromSockets()
            // The second exceeds the limit.
            #expect(port.queueCount == 2)
            try peers[1].send(MachMessage(id: 10))
            for _ in 0..<3 { port.localPort.receiveFromSockets() }
            #expect(port.queueCount == 2)
            try expectNoReports(of: port)
            var (ids, retained) = ([Int32](), [MachMessage]())
            while ids.count < 6 {
                let message = try port.next()
                ids.append(message.id)
                retained.append(message)  // what the receiver retains is not charged
            }
            #expect(ids.filter { $0 < 10 } == [0, 1, 2, 3, 4])
            #expect(ids.contains(10))
            #expect(try port.tryReceive() == nil)
            try expectNoCharge(at: port)
        }
    }

    @Test("above the limit in descriptors nothing more is read until some have been received")
    func descriptors() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedDescriptors = 3 }
            let pipe = try TestPipe()
            let peer = try RawPeer(to: port, on: bench)
            let two = MachMessage(components: [.descriptor(pipe.reading), .descriptor(pipe.writing)])
            for _ in 0..<4 { try peer.send(two) }
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 2)
            try expectNoReports(of: port)
            for _ in 0..<4 { #expect(try port.next().descriptors.count == 2) }
            // They count until they are closed.
            let deadline = Watchdog.deadline
            while !AsyncCloser.isIdle, .now < deadline { sched_yield() }
            try expectNoCharge(at: port)
        }
    }

    @Test("a message that was begun is finished, however much it adds")
    func begun() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 1_000 }
            let peer = try RawPeer(to: port, on: bench)
            let right = try bench.right(to: port)
            // A record of bytes, in two pieces.
            let payload = [1, 0, 0, 0] + [UInt8](littleEndian: UInt32(20_000)) + pattern(20_000)
            let header = PacketHeader(
                kind: .message, messageID: 1, componentCount: 1, totalLength: UInt64(payload.count))
            try peer.send(header, Array(payload.prefix(10_000)))
            port.localPort.receiveFromSockets()
            #expect(try right.trySend(MachMessage(id: 2)))
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 0)
            try peer.send(PacketHeader(kind: .continuation), Array(payload.dropFirst(10_000)))
            #expect(try port.next().bytes == pattern(20_000))
            #expect(try port.next().id == 2)
        }
    }

    @Test("a message above the port's own limit is dropped: the requester learns it, and the connection goes on")
    func messageBytes() async throws {
        try await onBench(over: .socket) { bench in
            var limits = PeerLimits()
            limits.messageBytes = 5_000
            try bench.serving({ _, message in try? message.reply(message) }) { right, port, _ in
                port.setPeerLimits(limits)
                for size in [4_993, 100_000] {
                    let error = portError { () throws(PortError) in
                        _ = try right.ask(MachMessage(bytes: pattern(size)))
                    }
                    #expect(error?.code == .messageTooLarge)
                    #expect(error?.delivery == .unread)
                    try right.send(MachMessage(bytes: pattern(size)))
                }
                #expect(try right.ask(MachMessage(id: 3, bytes: pattern(4_992))).id == 3)
                #expect(port.droppedMessageCount == 2)
            }
        }
    }

    @Test("the sender of what a port has not read gets its end reported, also above the port's limit")
    func messageBytesOfDeadPort() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            var limits = PeerLimits()
            limits.messageBytes = 5_000
            port.setPeerLimits(limits)
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 1)
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 1)
            try peer.send(MachMessage(id: 2, bytes: pattern(10_000)), asks: 2)
            port.invalidate()
            var reasons: [UInt64: Int32] = [:]
            while reasons.count < 2, let header = try peer.next() {
                if header.kind == .replyDropped { reasons[header.answers] = header.messageID }
            }
            let died = Int32(PortError.Code.peerDied.rawValue)
            #expect(reasons == [1: died, 2: died])
        }
    }

    @Test("what bounces, is dropped by the policy, or ends with the port is uncharged", arguments: ["policy", "end"])
    func givenBack(by way: String) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 2, policy: way == "policy" ? .keepLatest : .refuse)
            let peer = try RawPeer(to: port, on: bench)
            for id in Int32(0)..<2 { try peer.send(MachMessage(id: id, bytes: Self.block), asks: UInt64(id + 1)) }
            port.localPort.receiveFromSockets()
            let sockets = try #require(port.localPort.sockets)
            let process = PeerID.process(PeerIdentity.current.processID)
            if way == "policy" {
                #expect(port.queueCount == 1)
                #expect(try port.next().id == 1)
                try expectNoCharge(at: port)
            } else {
                var tight = PeerLimits()
                tight.queuedBytes = 1
                port.setPeerLimits(tight)
                #expect(sockets.quotas.withLock { $0.isOver(process) })
                port.invalidate()
                #expect(!sockets.quotas.withLock { $0.isOver(process) })
            }
        }
    }

    @Test("a paused client that ends is noticed, and what it sent is still received")
    func end() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 1 }
            try {
                let peer = try RawPeer(to: port, on: bench)
                for id in Int32(0)..<4 { try peer.send(MachMessage(id: id, bytes: [1]), asks: UInt64(id + 1)) }
                port.localPort.receiveFromSockets()
                #expect(port.queueCount == 1)
            }()
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 1)
            try expectNoReports(of: port)
            let first = try port.next()
            #expect(first.id == 0 && first.isCancelled)
            for id in Int32(1)..<4 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive() == nil)
            #expect(port.localPort.connectionCount == 0)
            try expectNoCharge(at: port)
        }
    }

    @Test("a client that ends after it was paused, before the kernel knows, is noticed and read to its end")
    func endWhilePaused() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let sockets = try #require(port.localPort.sockets)
            let connection = try {
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(MachMessage(id: 0))
                #expect(try port.next().id == 0)
                var tight = PeerLimits()
                tight.queuedBytes = 1
                port.setPeerLimits(tight)
                for id in Int32(1)...2 { try peer.send(MachMessage(id: id, bytes: [1])) }
                return try #require(sockets.state.withLock { $0.members.values.first })
            }()
            #expect(connection.receive(into: port.localPort, limit: 1).count == 1)
            // One thread pauses it and has not changed the kernel's set yet; another sees the end.
            #expect(sockets.quotas.withLock { $0.pause(connection.number) })
            connection.receiver.isThrottled.store(true, ordering: .releasing)
            sockets.unwatch(connection)
            connection.updateInterest()
            for id in Int32(1)...2 { #expect(try port.tryReceive()?.id == id) }
            #expect(try port.tryReceive()?.id == nil)
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test("a process that opens and closes connections all the time keeps no client of another waiting")
    func churn() async throws {
        try await onBench(over: .process) { bench in
            try bench.serving({ _, message in try? message.reply(message) }) { _, port, _ in
                let address = try port.localPort.address(in: bench.directory)
                let old = try bench.farSender(to: port)
                let (begun, done) = (Counter("connections"), Counter("ends"))
                let churn = runOnThread {
                    while done.value == 0 {
                        let socket = try sysPacketSocket()
                        _ = try sysConnect(socket.raw, path: address.path)
                        begun.increment()
                    }
                }
                begun.waitUntilCount(100)
                let result = Result { () throws -> Void in
                    for id in Int32(0)..<5 { #expect(try old.ask(MachMessage(id: id)).id == id) }
                    // Another finds room in the backlog, and is accepted.
                    var late: FarSender?
                    let deadline = Watchdog.deadline
                    while late == nil, .now < deadline { late = try? bench.farSender(to: port) }
                    #expect(try late?.ask(MachMessage(id: 50)).id == 50)
                }
                done.increment()
                try churn.join()
                try result.get()
            }
        }
    }

    @Test("higher limits let a paused client go on")
    func raised() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 1 }
            let peer = try RawPeer(to: port, on: bench)
            for id in Int32(0)..<4 { try peer.send(MachMessage(id: id, bytes: [1])) }
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 1)
            port.setPeerLimits(.standard)
            port.localPort.receiveFromSockets()
            #expect(port.queueCount == 4)
        }
    }

    @Test("replies that are not read count, and are uncharged when they are read")
    func unreadReplies() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 500_000 }
            let process = PeerID.process(PeerIdentity.current.processID)
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 1)
            try port.next().reply(MachMessage(bytes: pattern(2 << 20)))
            let sockets = try #require(port.localPort.sockets)
            #expect(sockets.quotas.withLock { $0.isOver(process) })
            var count = 0
            while count < 2 << 20 {
                _ = try sysPoll(peer.socket.rawValue, .readable, until: Watchdog.deadline)
                count += try sysReceivePacket(peer.socket.rawValue, limit: PacketHeader.packetLimit).1.count
                if count == 0 { throw NothingCame() }
            }
            try peer.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
        }
    }

    @Test("an answer that is awaited counts while it comes, and not when it has come")
    func awaitedAnswer() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 15_000 }
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
            let sockets = try #require(port.localPort.sockets)
            let connection = try #require(sockets.state.withLock { $0.members.values.first })
            let receiver = KeepsAnswer()
            let token = try connection.expectReply(for: ReplyTarget(receiver))
            connection.didSend(token: token)
            let payload = [1, 0, 0, 0] + [UInt8](littleEndian: UInt32(20_000)) + pattern(20_000)
            let header = PacketHeader(
                kind: .message, messageID: 3, componentCount: 1, answers: token, totalLength: UInt64(payload.count))
            try peer.send(header, Array(payload.prefix(10_000)))
            port.localPort.receiveFromSockets()
            let process = PeerID.process(PeerIdentity.current.processID)
            #expect(sockets.quotas.withLock { $0.isOver(process) })
            try peer.send(PacketHeader(kind: .continuation), Array(payload.dropFirst(10_000)))
            port.localPort.receiveFromSockets()
            #expect(receiver.answers.elements.map(\.id) == [3])
            try expectNoCharge(at: port)
        }
    }

    private final class KeepsAnswer: ReplyReceiver {
        let answers = Recorder<MachMessage>("answers")

        func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
            answers.append(message)
        }

        func fail(_ error: PortError) {}
        func expectReply(over connection: any ReplyConnection) throws(PortError) {}
    }

    @Test("descriptors of replies that are not read count, and are uncharged when they are read")
    func unreadDescriptors() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedDescriptors = 4 }
            let process = PeerID.process(PeerIdentity.current.processID)
            let (peer, pipe) = (try RawPeer(to: port, on: bench), try TestPipe())
            let reply = MachMessage(components: [.bytes(pattern(60_000)), .descriptor(pipe.reading)])
            for token in UInt64(1)...16 { try peer.send(MachMessage(id: 1), asks: token) }
            for _ in 1...16 { try port.next().reply(reply) }
            let sockets = try #require(port.localPort.sockets)
            #expect(sockets.quotas.withLock { $0.isOver(process) })
            for token in UInt64(1)...16 { #expect(try peer.next()?.answers == token) }
            try peer.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            try expectNoCharge(at: port)
        }
    }

    /// The sockets report nothing, so the port's loop sleeps.
    private func expectNoReports(of port: MachPort) throws {
        let sockets = try #require(port.localPort.sockets)
        #expect(sockets.epoll.wait(until: .distantPast).isEmpty)
    }
}

extension Bench {
    /// A port with limits of its own.
    func limitedPort(_ change: (inout PeerLimits) -> Void) throws -> MachPort {
        let port = try port()
        var limits = PeerLimits()
        change(&limits)
        port.setPeerLimits(limits)
        return port
    }
}

/// Even the tightest limit would pause no process.
func expectNoCharge(at port: MachPort, sourceLocation: SourceLocation = #_sourceLocation) throws {
    var tight = PeerLimits()
    (tight.queuedBytes, tight.queuedDescriptors) = (1, 1)
    port.setPeerLimits(tight)
    let sockets = try #require(port.localPort.sockets, sourceLocation: sourceLocation)
    #expect(
        !sockets.quotas.withLock { $0.isOver(.process(PeerIdentity.current.processID)) },
        sourceLocation: sourceLocation)
}

extension [UInt8] {
    fileprivate init(littleEndian number: UInt32) {
        self = []
        append(littleEndian: number)
    }
}
