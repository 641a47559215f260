// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import TestSupport
import Testing

@Suite("messages", .contract) struct MessageContract {
    @Test("messages arrive in send order, whatever their sizes", arguments: TestTransport.withName)
    func order(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 8)
            let right = try bench.right(to: port)
            let sender = runOnThread {
                for id in Int32(0)..<300 {
                    try right.send(MachMessage(id: id, bytes: pattern(Int(id) * 977 % 150_000)))
                }
            }
            for id in Int32(0)..<300 {
                let message = try port.next()
                #expect(message.id == id)
                #expect(message.bytes.count == Int(id) * 977 % 150_000)
            }
            try sender.join()
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("how many components the bytes are in makes no difference to what an idle connection accepts at once")
    func atOnce() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let taken = try [[253_000], [3_000, 250_000], [250_000, 3_000], [100_000, 153_000]].map { sizes in
                let message = MachMessage(components: sizes.map { .bytes(pattern($0)) })
                return try bench.right(to: port).trySend(message)
            }
            #expect(Set(taken).count == 1, "\(taken)")
        }
    }

    @Test("bytes of every size arrive whole", arguments: TestTransport.withName)
    func sizes(over transport: TestTransport) async throws {
        // One packet's payload less the head of one record: the largest message of one packet.
        let single = PacketHeader.payloadLimit - 8
        let sizes =
            [0, 1, 2, 3, 7, 8, 9, 1023, 4097] + [single - 1, single, single + 1, single + PacketHeader.payloadLimit]
            + [65_535, 65_536, 65_537, 1 << 20, 20 << 20]
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let sender = runOnThread {
                for size in sizes { try right.send(MachMessage(id: Int32(size), bytes: pattern(size))) }
            }
            for size in sizes {
                let message = try port.next()
                #expect(message.id == Int32(size))
                #expect(message.components.count == 1)
                #expect(message.bytes == pattern(size), "\(size) bytes")
            }
            try sender.join()
        }
    }

    @Test("every id arrives as it was", arguments: TestTransport.withName)
    func ids(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let ids: [Int32] = [0, 1, -1, .min, .max, 100, 0x0102_0304]
            for id in ids { try right.send(MachMessage(id: id)) }
            #expect(try ids.map { _ in try port.next().id } == ids)
        }
    }

    @Test(
        "a message without components, one with empty bytes, and one with many parts differ",
        arguments: TestTransport.withName)
    func components(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let parts: [[[UInt8]]] = [[], [[]], [[], []], [[1], [], [2, 3]], (0..<1000).map { pattern($0 % 7) }]
            for part in parts {
                try right.send(MachMessage(components: part.map { .bytes($0) }))
                #expect(try port.next().byteParts == part)
            }
        }
    }

    @Test(
        "a text arrives as it was, and bytes that are no text read as replacements", arguments: TestTransport.withName)
    func text(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            for text in ["", "a", "Füße 消息端口 🚪", "a\0b"] {
                try right.send(MachMessage(text: text))
                #expect(try port.next().text == text)
            }
            try right.send(MachMessage(bytes: [0x61, 0xFF]))
            #expect(try port.next().text == "a\u{FFFD}")
        }
    }

    @Test(
        "a sent message stays the sender's, and changing it changes nothing that was sent",
        arguments: TestTransport.withName)
    func value(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            var message = MachMessage(id: 1, bytes: [1, 2, 3])
            try bench.right(to: port).send(message)
            message.id = 2
            message.components = []
            let received = try port.next()
            #expect(received.id == 1)
            #expect(received.bytes == [1, 2, 3])
        }
    }

    @Test("a message names its sender: process, user and group", arguments: TestTransport.withName)
    func sender(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            try bench.right(to: port).send(MachMessage())
            let sender = try port.next().sender
            #expect(sender.processID == getpid())
            #expect(sender.userID == geteuid())
            #expect(sender.groupID == getegid())
        }
    }

    @Test(
        "a body above its limit is refused; the error has size and limit, and the message is intact",
        arguments: TestTransport.connected)
    func tooLarge(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            // The parts share their storage.
            let part = pattern(1 << 20)
            let count = MessageLimits.payload >> 20
            let large = MachMessage(id: 9, components: Array(repeating: .bytes(part), count: count))
            let error = portError { () throws(PortError) in try right.send(large) }
            #expect(error?.code == .messageTooLarge && error?.delivery == .notSent)
            // Each component needs eight bytes more.
            let (size, limit) = (count << 20 + count * 8, MessageLimits.payload)
            #expect("\(try #require(error))".contains("(\(size) of at most \(limit) bytes"))
            #expect(large.id == 9 && large.components.count == count)
            #expect(large.byteParts.allSatisfy { $0 == part })
            try right.send(MachMessage(id: 7))
            #expect(try port.next().id == 7)
        }
    }

    @Test("a body above the limit for other processes can be sent within a process")
    func largeWithinProcess() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port()
            let part = pattern(1 << 20)
            try bench.right(to: port).send(MachMessage(components: Array(repeating: .bytes(part), count: 1_600)))
            #expect(try port.next().byteParts.reduce(0) { $0 + $1.count } == 1_600 << 20)
        }
    }
}

extension MachMessage {
    /// The byte components, in order.
    var byteParts: [[UInt8]] {
        components.compactMap { if case .bytes(let bytes) = $0 { bytes } else { nil } }
    }
}
