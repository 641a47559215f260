// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("hostile peers", .contract) struct HostilePeerTests {
    /// What a hostile client sends, each a breach of the wire format.
    enum Breach: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case emptyPacket, shortPacket, foreignMagic, otherVersion, unknownKind, oversizedPacket, lieAboutDescriptors,
            hiddenDescriptors
        case lieAboutLength, hugeTotal, tooManyComponents, continuationOfNothing, messageInMessage, emptyContinuation
        case lieInContinuation, descriptorInContinuation, longContinuation, textInMessage
        case brokenRecords, abortOfNothing, replyPortNoAddress
        case failureInMessage, longFailure, abandonedWithPayload, portEndFromClient
        case answerToNothing, dropOfNothing, failureOfNothing

        var testDescription: String { rawValue }

        func commit(_ peer: RawPeer) throws {
            var whole = PacketHeader(kind: .message, messageID: 1)
            switch self {
            case .emptyPacket: try peer.send([])
            case .shortPacket: try peer.send(Array(whole.encoded.prefix(39)))
            case .foreignMagic: try peer.send([0x47] + whole.encoded.dropFirst())
            case .otherVersion:
                var bytes = whole.encoded
                bytes[4] = 1
                try peer.send(bytes)
            case .unknownKind:
                var bytes = whole.encoded
                bytes[5] = 200
                try peer.send(bytes)
            case .oversizedPacket: try peer.send(whole.encoded + pattern(PacketHeader.packetLimit))
            case .lieAboutDescriptors:
                whole.descriptorCount = 2
                try peer.send(whole, [], [peer.socket])
            case .hiddenDescriptors: try peer.send(whole, [], [peer.socket, peer.socket])
            case .lieAboutLength: try peer.send(whole, [1, 2, 3])
            case .hugeTotal:
                whole.totalLength = .max
                try peer.send(whole, [1])
            case .tooManyComponents:
                whole.componentCount = .max
                try peer.send(whole)
            case .continuationOfNothing: try peer.send(PacketHeader(kind: .continuation), [1])
            case .messageInMessage, .emptyContinuation:
                whole.totalLength = 100
                try peer.send(whole, [1])
                try peer.send(PacketHeader(kind: self == .messageInMessage ? .message : .continuation))
            case .lieInContinuation, .descriptorInContinuation, .longContinuation, .textInMessage:
                whole.totalLength = 3
                try peer.send(whole, [1])
                let kind = self == .textInMessage ? PacketKind.replyFailed : .continuation
                let lie: UInt16 = self == .lieInContinuation ? 1 : 0
                let files = self == .descriptorInContinuation ? [peer.socket] : []
                let header = PacketHeader(kind: kind, descriptorCount: lie + UInt16(files.count))
                try peer.send(header, self == .longContinuation ? [2, 3, 4] : [2, 3], files)
            case .brokenRecords:
                whole.componentCount = 1
                whole.totalLength = 9
                try peer.send(whole, [9, 9, 9, 9, 9, 9, 9, 9, 9])
            case .failureInMessage:
                whole.totalLength = 100
                try peer.send(whole, [1])
                try peer.send(PacketHeader(kind: .replyFailed, answers: 1))
            case .longFailure:
                let size = PortError.remoteTextLimit + 1
                try peer.send(PacketHeader(kind: .replyFailed, answers: 1), pattern(size))
            case .abandonedWithPayload: try peer.send(PacketHeader(kind: .abandoned, asks: 1), [1])
            case .portEndFromClient: try peer.send(PacketHeader(kind: .portEnded))
            case .answerToNothing: try peer.send(MachMessage(id: 1), answers: 1)
            case .dropOfNothing: try peer.send(PacketHeader(kind: .replyDropped, answers: .max))
            case .failureOfNothing: try peer.send(PacketHeader(kind: .replyFailed, answers: 1))
            case .abortOfNothing: try peer.send(PacketHeader(kind: .abort))
            case .replyPortNoAddress:
                whole.totalLength = 9
                try peer.send(whole, [4, 0, 0, 0, 1, 0, 0, 0, 0x61])
            }
        }
    }

    @Test(
        "a breach of the format is refused with its code, ends that connection alone, and loses no descriptor",
        arguments: Breach.allCases)
    func breach(_ breach: Breach) async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving({ _, message in
                if message.id == 1 { Issue.record("a broken message was delivered") }
                try? message.reply(message)
            }) { right, _, _ in
                let (before, good) = (try right.ask(MachMessage(id: 5)), right)
                #expect(before.id == 5)
                try bench.hostile(to: right) { peer in
                    try breach.commit(peer)
                    let refusal = try peer.next()
                    #expect(refusal?.kind == .refused)
                    #expect(refusal?.messageID == Int32(PortError.Code.malformedPacket.rawValue))
                    let end = try peer.next()
                    #expect(end == nil)
                }
                let after = try good.ask(MachMessage(id: 6))
                #expect(after.id == 6)
            }
        }
    }

    @Test("a token under which a reply is still owed cannot ask for another: that connection is refused")
    func tokenTwice() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 7)
            let first = try port.next()
            try peer.send(MachMessage(id: 2), asks: 7)
            #expect(try port.tryReceive()?.id == nil)
            let refusal = try peer.next()
            #expect(refusal?.kind == .refused)
            #expect(refusal?.messageID == Int32(PortError.Code.malformedPacket.rawValue))
            #expect(first.id == 1 && first.isCancelled)
        }
    }

    @Test("a client that reads nothing any more does not keep the port's loop busy")
    func clientReadsNothing() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 1)
            do {
                let message = try port.next()
                sysShutDown(peer.socket.rawValue, receivingOnly: true)
                #expect(message.expectsReply)
            }
            let sockets = try #require(port.localPort.sockets)
            for _ in 0..<3 { sockets.receive(into: port.localPort) }
            #expect(sockets.epoll.wait(until: .distantPast).isEmpty)
            withExtendedLifetime(peer) {}
        }
    }

    @Test("the client that sees its packets refused gets the code at its next send")
    func refusedClient() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let right = SendRight(try #require(try RightsTable.connect(to: listener.address)))
            let peer = try listener.accept()
            try right.send(MachMessage())
            try peer.send(PacketHeader(kind: .refused, messageID: Int32(PortError.Code.malformedPacket.rawValue)))
            sysShutDown(peer.socket.rawValue)
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .malformedPacket)
            #expect(right.isDead)
        }
    }

    @Test("half a message, then the end: nothing is delivered, others are served", arguments: [false, true])
    func halfMessage(withDescriptor: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let reading = try {
                let pipe = try TestPipe()
                let peer = try RawPeer(to: port, on: bench)
                let header = PacketHeader(
                    kind: .message, descriptorCount: withDescriptor ? 1 : 0, messageID: 1, componentCount: 1,
                    totalLength: 100_000)
                try peer.send(header, pattern(60_000), withDescriptor ? [pipe.writing] : [])
                return pipe.reading
            }()
            try right.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            // The half message's descriptor is closed with its connection.
            while try port.tryReceive()?.id != nil {}
            #expect(try sysPoll(reading.rawValue, .readable, until: Watchdog.deadline) == .hangUp)
        }
    }

    @Test("one-way messages that a peer sent before its end arrive")
    func sentThenGone() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            do {
                let right = try bench.right(to: port)
                for id in Int32(0)..<20 { try right.send(MachMessage(id: id)) }
            }
            for id in Int32(0)..<20 { #expect(try port.next().id == id) }
        }
    }

    @Test("a reply with a token that is no longer awaited is dropped, and the connection goes on")
    func lateReply() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let token = try peer.givenUpToken(at: port)
            try peer.send(MachMessage(id: 1), answers: token)
            try peer.send(PacketHeader(kind: .replyDropped, answers: token))
            try peer.send(PacketHeader(kind: .replyFailed, answers: token))
            try peer.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "an answer that is not awaited is not stored while it comes; a request in it is reported as dropped"
    )
    func unwantedAnswer() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let token = try peer.givenUpToken(at: port)
            let reading = try {
                let pipe = try TestPipe()
                let header = PacketHeader(
                    kind: .message, descriptorCount: 1, componentCount: 1, asks: 5, answers: token, totalLength: 40_000)
                try peer.send(header, pattern(20_000), [pipe.writing])
                return pipe.reading
            }()
            port.localPort.receiveFromSockets()
            // Its descriptor is closed, and the connection lives.
            #expect(try sysPoll(reading.rawValue, .readable, until: Watchdog.deadline) == .hangUp)
            try peer.send(PacketHeader(kind: .continuation), pattern(20_000))
            try peer.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            let answer = try peer.next()
            #expect(answer?.kind == .replyDropped && answer?.answers == 5)
        }
    }

    @Test("a flood of requests and of connections keeps no other client out")
    func flood() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving(queueLimit: 4, { _, message in try? message.reply(message) }) { right, port, _ in
                let floods = try (0..<3).map { _ in
                    let peer = try RawPeer(to: port, on: bench)
                    return runOnThread {
                        // Sends as much as the kernel accepts, and reads no answer.
                        for token in UInt64(1)...3000 { try? peer.send(MachMessage(id: 3), asks: token) }
                    }
                }
                let idle = try (0..<100).map { _ in try RawPeer(to: port, on: bench) }
                for id in Int32(0)..<50 {
                    let reply = try right.ask(MachMessage(id: id))
                    #expect(reply.id == id)
                }
                for flood in floods { try flood.join() }
                withExtendedLifetime(idle) {}
            }
        }
    }

    /// How a hostile listener answers a request.
    enum Answer: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case garbage, oversized, message, wrongRecords, continuation, lieAboutDescriptors, answerToNothing

        var testDescription: String { rawValue }

        func give(_ peer: RawPeer, _ token: UInt64) throws {
            switch self {
            case .garbage: try peer.send([1, 2, 3])
            case .oversized: try peer.send(pattern(PacketHeader.packetLimit + 1))
            case .message: try peer.send(MachMessage(id: 1))
            case .wrongRecords:
                try peer.send(
                    PacketHeader(kind: .message, componentCount: 1, answers: token, totalLength: 3), [1, 2, 3])
            case .continuation: try peer.send(PacketHeader(kind: .continuation), [1])
            case .lieAboutDescriptors: try peer.send(PacketHeader(kind: .message, descriptorCount: 1, answers: token))
            case .answerToNothing: try peer.send(MachMessage(id: 1), answers: token + 1)
            }
        }
    }

    @Test("a request to a listener that answers garbage fails with malformedPacket", arguments: Answer.allCases)
    func hostileListener(_ answer: Answer) async throws {
        try await onBench(over: .socket) { bench in
            let (right, other) = try bench.rawListener { peer in
                let request = try #require(try peer.next())
                #expect(request.asks != 0)
                try answer.give(peer, request.asks)
                let refusal = try peer.next()
                #expect(refusal?.kind == .refused)
                #expect(refusal?.messageID == Int32(PortError.Code.malformedPacket.rawValue))
            }
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .malformedPacket)
            try other.join()
            #expect(right.isDead)
        }
    }

    @Test("a listener that goes away in mid-request gives peerDied", arguments: [false, true])
    func listenerDies(hasRead: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let waits = Gate("the request waits")
            let (right, other) = try bench.rawListener { peer in
                if hasRead { _ = try peer.next() }
                waits.wait()
            }
            waitsNow(in: .portReply, waits)
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .peerDied)
            try other.join()
        }
    }

    @Test(
        "a request to a listener that says why it drops it gives that reason",
        arguments: [
            (Int32(0), "replyDropped"), (3, "peerDied"), (9, "descriptorsLost"), (77, "replyDropped"),
            (-1, "replyDropped"),
        ])
    func dropReasons(reason: Int32, code: String) async throws {
        try await onBench(over: .socket) { bench in
            let (right, other) = try bench.rawListener { peer in
                let request = try #require(try peer.next())
                try peer.send(PacketHeader(kind: .replyDropped, messageID: reason, answers: request.asks))
                _ = try peer.next()
            }
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code.description == code)
            right.close()
            try other.join()
        }
    }

    @Test("random packets neither trap nor hang a port, and others are served", .seeded)
    func fuzz() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving(queueLimit: 8, { _, message in try? message.reply(message) }) { right, port, _ in
                var generator = Seed.generator()
                for _ in 0..<150 {
                    let peer = try RawPeer(to: port, on: bench)
                    for _ in 0..<Int.random(in: 1...6, using: &generator) {
                        _ = try? peer.send(
                            randomPacket(&generator), Bool.random(using: &generator) ? [] : [peer.socket])
                    }
                }
                let reply = try right.ask(MachMessage(id: 8))
                #expect(reply.id == 8)
            }
        }
    }

    private func randomPacket(_ generator: inout SplitMix64) -> [UInt8] {
        let payload = (0..<Int.random(in: 0..<40, using: &generator)).map { _ in
            UInt8.random(in: 0...9, using: &generator)
        }
        var bytes =
            PacketHeader(
                kind: PacketKind.allCases.randomElement(using: &generator) ?? .message,
                descriptorCount: UInt16.random(in: 0...1, using: &generator),
                componentCount: UInt32.random(in: 0...3, using: &generator),
                asks: UInt64.random(in: 0...2, using: &generator), answers: UInt64.random(in: 0...2, using: &generator),
                totalLength: UInt64.random(in: 0...60, using: &generator)
            ).encoded + payload
        if Int.random(in: 0..<4, using: &generator) == 0 {
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= UInt8.random(in: 1...255, using: &generator)
        }
        return bytes
    }
}

extension Bench {
    /// Calls `body` with a raw connection to the port of a right.
    func hostile(to right: SendRight, _ body: (RawPeer) throws -> Void) throws {
        let socket = try sysPacketSocket()
        let isConnected = try sysConnect(socket.raw, path: right.destination.address().path)
        #expect(isConnected)
        try body(RawPeer(SharedDescriptor(socket)))
    }
}

extension SendRight {
    /// Ends the connection, as the end of the last right does.
    func close() {
        (destination as? RemotePort)?.connection?.close(PortError(.deadName))
    }
}
