// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite struct PortSnapshotTests {
    private static func sample(_ generator: inout SplitMix64) -> PortSnapshot {
        var snapshot = PortSnapshot(
            address: PortAddress(path: "/run/ports/sockets/" + String(repeating: "a", count: 32) + ".1"),
            queueLimit: Int.random(in: 1...65_534, using: &generator), policy: .dropOldest, limits: .standard)
        snapshot.counts = PortSnapshot.Counts(messages: 4, bytes: 5, dropped: 6, highWater: 7)
        for index in 0..<Int.random(in: 0...3, using: &generator) {
            snapshot.connections.append(
                PortSnapshot.Connection(
                    use: UInt8(index), lastToken: generator.next() >> 2, partial: index == 1 ? part : nil))
        }
        snapshot.presence = PortSnapshot.Presence(
            isCounting: Bool.random(using: &generator), hasHadClients: Bool.random(using: &generator),
            hasOpenPipe: Bool.random(using: &generator), hasReleasedPipe: Bool.random(using: &generator),
            announcers: snapshot.connections.indices.map { Bool.random(using: &generator) ? $0 : nil })
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let connection = snapshot.connections.isEmpty ? nil : 0
            snapshot.messages.append(
                PortSnapshot.Message(
                    id: -1, componentCount: 1, payload: [1, 2, 3], descriptorCount: 1, connection: connection,
                    asks: connection == nil ? 0 : 8, confirmation: connection == nil ? 0 : 2, cameByReplyRight: true,
                    sender: PortSnapshot.Sender(process: 1, user: 2, group: 3)))
        }
        return snapshot
    }

    /// What has come of a message of 100 bytes.
    private static var part: PacketAssembly.Snapshot? {
        var assembly = PacketAssembly()
        let header = PacketHeader(kind: .message, componentCount: 1, totalLength: 100)
        _ = assembly.accept(header, payload: [1, 0, 0, 0, 92, 0, 0, 0, 9], descriptors: [])
        return assembly.remainder?.0
    }

    @Test("a snapshot that was encoded is decoded as it was", .seeded)
    func roundTrip() {
        var generator = Seed.generator()
        for _ in 0..<100 {
            let snapshot = Self.sample(&generator)
            #expect(PortSnapshot(encoded: snapshot.encoded) == snapshot)
        }
    }

    @Test("bytes that are no snapshot are refused, or are another one that can be encoded", .seeded)
    func malformed() {
        var generator = Seed.generator()
        for _ in 0..<2000 {
            var bytes = Self.sample(&generator).encoded
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            if Bool.random(using: &generator) { bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator)) }
            guard let read = PortSnapshot(encoded: bytes) else { continue }
            #expect(read.encoded == bytes)
            #expect(read.descriptorCount >= 0)
        }
        #expect(PortSnapshot(encoded: []) == nil)
    }

    @Test("numbers with which the port could not go on are refused", arguments: 0..<9)
    func numbers(index: Int) {
        var generator = SplitMix64(seed: 1)
        var snapshot = Self.sample(&generator)
        (snapshot.messages, snapshot.connections) = ([], [])
        snapshot.presence.announcers = []
        #expect(PortSnapshot(encoded: snapshot.encoded) == snapshot)
        switch index {
        case 0:
            snapshot.messages = [
                PortSnapshot.Message(id: 1, componentCount: 0, payload: [], descriptorCount: 0, connection: 0)
            ]
        case 1: snapshot.presence.announcers = [0]
        case 2: snapshot.queueLimit = MachPort.maximumQueueLimit + 1
        case 3: snapshot.queueLimit = 0
        case 4: snapshot.connections = [PortSnapshot.Connection(use: 0, lastToken: .max)]
        case 5: snapshot.counts.dropped = .max
        case 6: snapshot.counts.messages = .max
        case 7: snapshot.counts.bytes = .max
        default: snapshot.counts.highWater = -1
        }
        #expect(PortSnapshot(encoded: snapshot.encoded) == nil)
    }

    @Test("the largest queue moves")
    func largestQueue() {
        var generator = SplitMix64(seed: 1)
        var snapshot = Self.sample(&generator)
        snapshot.queueLimit = MachPort.maximumQueueLimit
        #expect(PortSnapshot(encoded: snapshot.encoded) == snapshot)
    }

    @Test("a part of a message that cannot be is not continued")
    func part() throws {
        let part = try #require(Self.part)
        var assembly = PacketAssembly()
        let isResumed = assembly.resume(part, [])
        #expect(isResumed)
        #expect(assembly.remainder?.0 == part)
        let changes: [(inout PacketAssembly.Snapshot) -> Void] = [
            { $0.head[0] = 0 }, { $0.count = 100 }, { $0.count = -1 }, { $0.payload.append(0) },
            { $0.missingDescriptors = 1 }, { $0.descriptorCount = 1 }, { $0.allowance = PieceAllowance(bytes: 93) },
            { $0.tail = [0] },
        ]
        for change in changes {
            var other = part
            change(&other)
            var assembly = PacketAssembly()
            let isResumed = assembly.resume(other, [])
            #expect(!isResumed)
        }
    }
}
