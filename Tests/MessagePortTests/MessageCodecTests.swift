// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("MessageCodec", .leakCheck) struct MessageCodecTests {
    /// A message with every kind of record; its rights lead nowhere.
    private static func sample() throws -> MachMessage {
        let right = SendRight(DeadPort(PortAddress(path: "/tmp/somewhere/x")))
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(errno) }
        let (reading, writing) = (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
        return MachMessage(
            id: 7,
            components: [.bytes([1, 2, 3]), .right(right), .descriptor(reading), .bytes([]), .descriptor(writing)],
            replyPort: SendRight(DeadPort(PortAddress(path: "/r"))))
    }

    @Test("what is encoded is decoded again, part by part")
    func roundTrip() throws {
        let message = try Self.sample()
        let encoded = try EncodedMessage(message)
        #expect(encoded.id == 7)
        #expect(encoded.componentCount == 5)
        #expect(encoded.descriptors.map(\.rawValue) == message.descriptors.map(\.rawValue))
        let decoded = try #require(encoded.decodedToNowhere())
        #expect(decoded.parts == message.parts)
        #expect(decoded.id == 7)
        let empty = try #require(try EncodedMessage(MachMessage(id: -1)).decodedToNowhere())
        #expect(empty.components.isEmpty)
        #expect(empty.id == -1)
    }

    @Test("the records have the layout of the wire format")
    func layout() throws {
        let right = SendRight(DeadPort(PortAddress(path: "/a")))
        let message = MachMessage(components: [.bytes([9, 8]), .right(right)], replyPort: right)
        let address = Array("/a".utf8)
        let expected: [UInt8] =
            [4, 0, 0, 0, 2, 0, 0, 0] + address + [1, 0, 0, 0, 2, 0, 0, 0, 9, 8] + [2, 0, 0, 0, 2, 0, 0, 0] + address
        #expect(try EncodedMessage(message).payload == expected)
    }

    @Test("a payload that ends too early is refused, or is a message of its own")
    func truncations() throws {
        let encoded = try EncodedMessage(Self.sample())
        for count in 0..<encoded.payload.count {
            var short = encoded
            short.payload = Array(encoded.payload.prefix(count))
            #expect(short.decodedToNowhere()?.id == nil, "\(count) bytes")
        }
    }

    @Test("no corrupted byte traps: the payload is refused, or is a valid message with as many components")
    func corruptions() throws {
        let encoded = try EncodedMessage(Self.sample())
        var accepted = 0
        var wrong: [Int] = []
        for index in encoded.payload.indices {
            for value in UInt8.min ... .max where value != encoded.payload[index] {
                var corrupted = encoded
                corrupted.payload[index] = value
                guard let message = corrupted.decodedToNowhere() else { continue }
                accepted += 1
                if message.components.count != encoded.componentCount { wrong.append(index) }
                if message.descriptors.count != encoded.descriptors.count { wrong.append(index) }
            }
        }
        #expect(wrong == [])
        // Bytes of bytes and of addresses may change; heads may not.
        #expect(accepted > 0)
        #expect(accepted < encoded.payload.count * 255)
    }

    @Test("random payloads do not trap", .seeded)
    func random() {
        var generator = Seed.generator()
        for _ in 0..<5000 {
            let count = Int.random(in: 0..<64, using: &generator)
            let payload = (0..<count).map { _ in UInt8.random(in: 0...4, using: &generator) }
            let encoded = EncodedMessage(
                id: 0, componentCount: Int.random(in: 0..<4, using: &generator), payload: payload, descriptors: [])
            if let message = encoded.decodedToNowhere() { #expect(message.components.count == encoded.componentCount) }
        }
    }

    @Test("a false count of components or descriptors is refused", arguments: [-1, 1, 1000])
    func falseCounts(difference: Int) throws {
        let encoded = try EncodedMessage(Self.sample())
        var lie = encoded
        lie.componentCount += difference
        #expect(lie.decodedToNowhere()?.id == nil)
        lie = encoded
        lie.descriptors = difference < 0 ? [lie.descriptors[0]] : lie.descriptors + [lie.descriptors[0]]
        #expect(lie.decodedToNowhere()?.id == nil)
    }

    @Test(
        "an address is absolute, has no NUL and is shorter than a path may be",
        arguments: ["", "a", "/\0", "/a\0b", "/" + String(repeating: "x", count: 4095)])
    func addresses(path: String) {
        for kind in [UInt8(2), 4] {
            var payload: [UInt8] = [kind, 0, 0, 0]
            payload.append(littleEndian: UInt32(path.utf8.count))
            payload += Array(path.utf8)
            let encoded = EncodedMessage(id: 0, componentCount: kind == 2 ? 1 : 0, payload: payload, descriptors: [])
            #expect(encoded.decodedToNowhere()?.id == nil)
        }
    }

    @Test("two reply ports, and a reply port after a component, are refused")
    func replyPorts() {
        let port: [UInt8] = [4, 0, 0, 0, 2, 0, 0, 0, 0x2F, 0x61]
        let bytes: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0]
        func decode(_ payload: [UInt8], _ count: Int) -> MachMessage? {
            EncodedMessage(id: 0, componentCount: count, payload: payload, descriptors: []).decodedToNowhere()
        }
        #expect(decode(port, 0)?.replyPort != nil)
        #expect(decode(port + bytes, 1)?.replyPort != nil)
        #expect(decode(port + port, 0)?.id == nil)
        #expect(decode(bytes + port, 1)?.id == nil)
    }

    @Test("the first record above the count ends the decoding")
    func tooManyRecords() {
        var resolved = 0
        let right: [UInt8] = [2, 0, 0, 0, 2, 0, 0, 0, 0x2F, 0x61]
        let payload = Array(repeatElement(right, count: 1000).joined())
        let encoded = EncodedMessage(id: 0, componentCount: 3, payload: payload, descriptors: [])
        let message = encoded.decoded { address, _ in
            resolved += 1
            return SendRight(DeadPort(address))
        }
        #expect(message?.id == nil)
        #expect(resolved == 3)
    }

    @Test("a large body at the end of a message is not copied, neither when it is encoded nor when it is decoded")
    func tail() throws {
        let body = [UInt8](repeating: 7, count: 300_000)
        let message = MachMessage(id: 3, components: [.bytes([1, 2]), .bytes(body)])
        let encoded = try EncodedMessage(message)
        #expect(encoded.payload.count == 18 && encoded.size == 300_018)
        let decoded = try #require(encoded.decodedToNowhere())
        guard case .bytes(let received)? = decoded.components.last else { throw NoBytes() }
        let bodies = [body, try OutgoingMessage(message).tail, received]
        let bases = bodies.map { bytes in bytes.withUnsafeBufferPointer { $0.baseAddress } }
        #expect(Set(bases).count == 1)
    }

    private struct NoBytes: Error {}

    @Test("bytes at the end of a message are not copied when it is encoded, and alone need no other memory")
    func inPlace() throws {
        let body: [UInt8] = [1, 2, 3]
        let alone = try OutgoingMessage(MachMessage(bytes: body))
        #expect(alone.records.capacity == 0)
        #expect(alone.firstWord == (1 | 3 << 32 as UInt64).littleEndian)
        let behind = try OutgoingMessage(MachMessage(components: [.bytes([4, 5]), .bytes(body)]))
        #expect(behind.records == [4, 5, 1, 0, 0, 0, 3, 0, 0, 0])
        let bases = [body, alone.tail, behind.tail].map { bytes in bytes.withUnsafeBufferPointer { $0.baseAddress } }
        #expect(Set(bases).count == 1)
    }

    @Test("a message is the same bytes in whatever pieces it is sent, and a large tail has packets of its own", .seeded)
    func pieces() throws {
        var generator = Seed.generator()
        for large in [0, 0, 0, 0, 40_000, 300_000] {
            let parts = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                MachMessage.Component.bytes((0..<Int.random(in: 0...30, using: &generator)).map { UInt8($0) })
            }
            let last = large == 0 ? [] : [MachMessage.Component.bytes([UInt8](repeating: 7, count: large))]
            let message = try OutgoingMessage(MachMessage(components: parts + last))
            let header = PacketHeader(kind: .message)
            var expected = message.packet(header, at: 0, atMost: .max).bytes
            if message.isDivided { expected += message.tail }
            #expect(expected.count == message.size && message.isDivided == (large == 300_000))
            for limit in large == 0 ? [8, 9, 15, 100] : [1000, PacketHeader.payloadLimit] {
                var bytes: [UInt8] = []
                while bytes.count < message.size {
                    let packet = message.packet(header, at: bytes.count, atMost: limit)
                    #expect((1...limit).contains(packet.payloadSize))
                    #expect(packet.payloadSize == packet.bytes.count)
                    bytes += packet.bytes
                }
                #expect(bytes == expected)
            }
        }
    }

    @Test("what may fit into an empty socket, and what ends with something small, is all payload")
    func noTail() throws {
        let large = MachMessage.Component.bytes([UInt8](repeating: 7, count: 250_000))
        #expect(try EncodedMessage(MachMessage(components: [.bytes([1]), large])).tail.isEmpty)
        #expect(try EncodedMessage(MachMessage(components: [large, large, .bytes([1])])).tail.isEmpty)
        #expect(try !EncodedMessage(MachMessage(components: [large, large])).tail.isEmpty)
    }

    @Test("a tail that is not the body of the last record is refused")
    func badTails() throws {
        var encoded = try EncodedMessage(MachMessage(components: [.bytes([1, 2]), .bytes([])]))
        encoded.tail = [1]
        #expect(encoded.decodedToNowhere()?.id == nil)
        encoded.payload[encoded.payload.count - 4] = 1
        #expect(encoded.decodedToNowhere()?.components.count == 2)
        encoded.payload[encoded.payload.count - 4] = 2
        #expect(encoded.decodedToNowhere()?.id == nil)
        encoded.payload[encoded.payload.count - 4] = 1
        encoded.payload[encoded.payload.count - 8] = 2
        #expect(encoded.decodedToNowhere()?.id == nil)
    }

    @Test("errors of limits have the size and the limit")
    func limits() throws {
        // 1,536 components with the same memory, and what is left.
        let part = MachMessage.Component.bytes([UInt8](repeating: 0, count: 1 << 20))
        var bulk = Array(repeating: part, count: MessageLimits.payload >> 20)
        bulk[0] = .bytes([UInt8](repeating: 0, count: 1 << 20 - 8 * (bulk.count + 1)))
        let large = MachMessage(components: bulk + [.bytes([1])])
        var error = portError { () throws(PortError) in _ = try OutgoingMessage(large) }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.subject == .size(MessageLimits.payload + 1, limit: MessageLimits.payload))
        let many = MachMessage(components: Array(repeating: .bytes([]), count: MessageLimits.components + 1))
        error = portError { () throws(PortError) in _ = try OutgoingMessage(many) }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.subject == .size(MessageLimits.components + 1, limit: MessageLimits.components, of: .components))
        let sample = try Self.sample()
        let descriptors = MachMessage(
            components: Array(repeating: sample.components[2], count: MessageLimits.descriptors + 1))
        error = portError { () throws(PortError) in _ = try OutgoingMessage(descriptors) }
        #expect(error?.code == .tooManyDescriptors)
        #expect(error?.subject == .size(501, limit: 500, of: .descriptors))
        // Small enough without its rights' addresses, too large with them.
        let edge = MachMessage(components: [.bytes([UInt8](repeating: 0, count: 84)), sample.components[1]])
        error = portError { () throws(PortError) in _ = try OutgoingMessage(edge, limit: 100) }
        #expect(error?.code == .messageTooLarge)
    }
}

extension EncodedMessage {
    /// What arrives of a message.
    init(_ message: MachMessage) throws(PortError) {
        let sent = try OutgoingMessage(message)
        var payload: [UInt8] = []
        if let firstWord = sent.firstWord { payload.append(littleEndian: UInt64(littleEndian: firstWord)) }
        payload += sent.records
        if !sent.isDivided { payload += sent.tail }
        self.init(
            id: sent.id, componentCount: sent.componentCount, payload: payload, tail: sent.isDivided ? sent.tail : [],
            descriptors: sent.descriptors)
    }

    /// Decodes with rights that lead nowhere.
    fileprivate func decodedToNowhere() -> MachMessage? {
        decoded { address, _ in SendRight(DeadPort(address)) }
    }
}

extension OutgoingPacket {
    /// The payload.
    fileprivate var bytes: [UInt8] {
        var first: [UInt8] = []
        if let firstWord { first.append(littleEndian: UInt64(littleEndian: firstWord)) }
        return first + payload + tail
    }
}

extension MachMessage {
    /// What is in it, as text.
    fileprivate var parts: [String] {
        ([replyPort].compactMap { $0 }.map { "reply \($0.path)" })
            + components.map { component in
                switch component {
                case .bytes(let bytes): "bytes \(bytes)"
                case .right(let right): "right \(right.path)"
                case .descriptor(let descriptor): "descriptor \(descriptor.rawValue)"
                case .receiveRight: "receive right"
                case .memory(let memory): "memory \(memory.copy())"
                }
            }
    }
}

extension SendRight {
    fileprivate var path: String {
        (try? destination.address().path) ?? "none"
    }
}
