// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import RawRing
import Synchronization
import TestSupport
import Testing

/// Clients and servers that use the rings as Docs/WireFormat.md forbids.
@Suite("hostile rings", .rings, .contract) struct HostileRingTests {
    /// A breach by a client that has rings, and sends through the ring.
    enum Breach: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case secondOffer, secondPathChange, unannounced, tailAhead, tailOdd, tailBack, tailAll, lengthZero, lengthHuge,
            kindUnknown
        case recordAcrossTail, foreignMagic, pathChangeInRing, descriptorsInRing, answerFromClient
        case wakeUpWithBytes, wakeUpWithFile, wakeUpWithToken
        case lieInContinuation, longContinuation, emptyContinuation, textInMessage

        var testDescription: String { rawValue }

        func commit(_ ring: RingPeer) throws {
            let message = PacketHeader(kind: .message, messageID: 1)
            switch self {
            case .secondOffer: try ring.peer.offer(ring.words.file)
            case .secondPathChange: try ring.peer.send(PacketHeader(kind: .pathChange))
            case .unannounced: try ring.peer.send(message)
            case .tailAhead: try lie(ring) { ring.tail = UInt64(SharedRing.capacity) + 8 }
            case .tailOdd: try lie(ring) { ring.tail += 3 }
            case .tailBack: try lie(ring) { ring.tail = 8 }
            case .tailAll: try lie(ring) { ring.tail = .max }
            case .lengthZero: try lie(ring) { append(ring, 1 << 32) }
            case .lengthHuge: try lie(ring) { append(ring, 0xFFFF_FFFF | 1 << 32) }
            case .kindUnknown: try lie(ring) { append(ring, 48 | 7 << 32) }
            case .recordAcrossTail: try lie(ring) { append(ring, 4_000 | 1 << 32) }
            case .foreignMagic: try lie(ring) { append(ring, 40 | 1 << 32, size: 48) }
            case .pathChangeInRing: try ring.write(PacketHeader(kind: .pathChange))
            case .descriptorsInRing:
                var header = message
                header.descriptorCount = 1
                try ring.write(header)
            case .wakeUpWithBytes: try ring.peer.send(PacketHeader(kind: .wakeUp), [1])
            case .wakeUpWithFile: try ring.peer.send(PacketHeader(kind: .wakeUp), [], [ring.words.file])
            case .wakeUpWithToken: try ring.peer.send(PacketHeader(kind: .wakeUp, asks: 1))
            case .lieInContinuation, .longContinuation, .emptyContinuation, .textInMessage:
                try ring.write(PacketHeader(kind: .message, messageID: 1, totalLength: 3), [1])
                let kind = self == .textInMessage ? PacketKind.replyFailed : .continuation
                let header = PacketHeader(kind: kind, descriptorCount: self == .lieInContinuation ? 1 : 0)
                let pieces: [Self: [UInt8]] = [.longContinuation: [2, 3, 4], .emptyContinuation: []]
                try ring.write(header, pieces[self] ?? [2, 3])
            case .answerFromClient: try ring.write(PacketHeader(kind: .ringAnswer))
            }
        }

        /// Changes the memory, and wakes the port, which may have read everything and be asleep.
        private func lie(_ ring: RingPeer, _ body: () -> Void) throws {
            body()
            try ring.peer.send(PacketHeader(kind: .wakeUp))
        }

        /// Writes a record's first eight bytes after what is there.
        private func append(_ ring: RingPeer, _ word: UInt64, size: UInt64 = 64) {
            ring.words[512 + Int(ring.tail) / 8] = word
            ring.tail += size
        }
    }

    @Test("a breach in the ring is refused with its code and ends that connection alone", arguments: Breach.allCases)
    func breach(_ breach: Breach) async throws {
        try await onBench(over: .ring) { bench in
            try bench.serving({ _, message in
                if message.id == 1 { Issue.record("a broken message was delivered") }
                try? message.reply(message)
            }) { right, port, _ in
                #expect(try right.ask(MachMessage(id: 5)).id == 5)
                let ring = try RingPeer(to: port, on: bench)
                #expect(ring.answer?.kind == .ringAnswer && ring.answer?.messageID == 0)
                try ring.peer.send(PacketHeader(kind: .pathChange))
                try ring.write(MachMessage(id: 2), asks: 9)
                // The reply: the port's end has read all.
                #expect(try ring.peer.next()?.kind == .pathChange)
                try breach.commit(ring)
                #expect(try ring.isRefused())
                #expect(try right.ask(MachMessage(id: 6)).id == 6)
            }
        }
    }

    @Test(
        "packets of rings on a connection without rings are a breach",
        arguments: [PacketKind.pathChange, .wakeUp, .ringAnswer])
    func withoutRings(kind: PacketKind) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(PacketHeader(kind: kind))
            #expect(try port.tryReceive() == nil)
            #expect(try peer.next()?.messageID == Int32(PortError.Code.malformedPacket.rawValue))
        }
    }

    @Test("a file that is no sealed memory of the right size is not mapped, and the socket goes on")
    func foreignFiles() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let (_, small) = try SharedMemory.make(size: 4096)
            let unsealed = SharedDescriptor(try sysOpen(bench.directory.path + "/file", .creating))
            #expect(ftruncate(unsealed.rawValue, SharedRing.memorySize) == 0)
            let socket = SharedDescriptor(try sysPacketSocket())
            for file in [small, unsealed, socket] {
                let peer = try RawPeer(to: port, on: bench)
                try peer.offer(file)
                try peer.send(MachMessage(id: 3))
                #expect(try port.next().id == 3)
                let answer = try peer.next()
                #expect(answer?.kind == .ringAnswer && answer?.messageID != 0)
            }
            let peer = try RawPeer(to: port, on: bench)
            try peer.offer(SharedMemory.make(size: SharedRing.memorySize).file, size: 1)
            #expect(try port.tryReceive() == nil)
            #expect(try peer.next()?.messageID != 0)
        }
    }

    @Test("a process gets no more rings at a port than its share, and those again whose connections end")
    func share() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            var rings: [RingPeer] = []
            func connect() throws -> Bool {
                let ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
                rings.append(ring)
                return ring.answer?.kind == .ringAnswer && ring.answer?.messageID == 0
            }
            for _ in 0..<Tuning.ringLimit { #expect(try connect()) }
            #expect(try !connect())
            rings.removeFirst()
            while port.localPort.receiveFromSockets() > 0 {}
            #expect(try connect())
        }
    }

    @Test("an offer without its file is a breach")
    func noFile() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.offer(nil)
            #expect(try port.tryReceive() == nil)
            #expect(try peer.next()?.kind == .refused)
        }
    }

    @Test("what a client wrote before it went is received, also when it sent no wake-up", arguments: [false, true])
    func writtenBeforeTheEnd(rings: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            var ring: RingPeer? = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            try ring?.peer.send(PacketHeader(kind: .pathChange))
            for id in Int32(0)..<50 {
                if rings {
                    try ring?.write(MachMessage(id: id))
                } else {
                    let header = PacketHeader(kind: .message, messageID: id)
                    _ = ring?.producer.write(header.words, [])
                }
            }
            ring = nil
            for id in Int32(0)..<50 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive() == nil)
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test("memory that changes while it is read neither traps nor hangs a port, and others are served", .seeded)
    func scribble() async throws {
        try await onBench(over: .ring) { bench in
            try bench.serving(queueLimit: 8, { _, message in try? message.reply(message) }) { right, port, _ in
                var generator = Seed.generator()
                for _ in 0..<20 {
                    let ring = try RingPeer(to: port, on: bench)
                    try ring.peer.send(PacketHeader(kind: .pathChange))
                    scribble(ring, &generator)
                    #expect(try right.ask(MachMessage(id: 8)).id == 8)
                }
            }
        }
    }

    private func scribble(_ ring: RingPeer, _ generator: inout SplitMix64) {
        for step in 0..<300 {
            // Repeats until the port has detected it.
            let payload = pattern(Int.random(in: 0..<200, using: &generator))
            guard (try? ring.write(MachMessage(id: 2, bytes: payload))) != nil else { return }
            if step < 20 { continue }
            let bit = UInt64(1) << UInt64.random(in: 0..<64, using: &generator)
            switch Int.random(in: 0..<40, using: &generator) {
            case 0: ring.words[0] ^= bit
            case 1: ring.words[16] ^= bit
            case 2: ring.words[32] ^= bit
            case 3: ring.words[33] ^= bit
            case 4: _ = ring.waker?.wake()
            default: ring.words[512 + Int.random(in: 0..<32_768, using: &generator)] ^= bit
            }
        }
    }

    @Test(
        "false counts of what a server has read or written end the connection",
        arguments: ["head", "bytes"])
    func hostileServer(lie: String) async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let remote = try #require(try RightsTable.connect(to: listener.address))
            let connection = try remote.reached()
            connection.useRings(.always)
            connection.sender.credit.setUnlimited()
            let right = SendRight(remote)
            let peer = try listener.accept()
            try right.send(MachMessage(id: 1))
            _ = try peer.takeOffer()
            let words = try RawRing()
            try peer.send(PacketHeader(kind: .ringAnswer, descriptorCount: 1), [], [words.file])
            connection.receiveUnlessReceiving()
            try right.send(MachMessage(id: 2))
            switch lie {
            case "head": words.head = 1 << 40
            default:
                try peer.send(PacketHeader(kind: .pathChange))
                words.tail = 48
                words[RawRing.records] = 1_000 | 1 << 32
                connection.receiveUnlessReceiving()
            }
            let error = portError { () throws(PortError) in
                while true { try right.send(MachMessage(bytes: pattern(5_000)), within: .zero) }
            }
            #expect(error?.code == .malformedPacket)
            #expect(right.isDead)
        }
    }
}

extension RawPeer {
    /// Reads the packets that come, up to the offer of rings.
    ///
    /// - Returns: what came with it: the memory, and the pipe if there is one.
    func takeOffer() throws -> [SharedDescriptor] {
        while true {
            _ = try sysPoll(socket.rawValue, .readable, until: Watchdog.deadline)
            let (outcome, bytes) = try sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit)
            guard case .packet(_, let files) = outcome else { throw NothingCame() }
            if PacketHeader(bytes)?.kind == .ring { return files }
        }
    }
}
