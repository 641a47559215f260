// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("PacketHeader") struct PacketHeaderTests {
    private static let header = PacketHeader(
        kind: .message, descriptorCount: 0x0201, messageID: 0x0605_0403, componentCount: 0x0A09_0807,
        asks: 0x1211_100F_0E0D_0C0B, answers: 0x1A19_1817_1615_1413, totalLength: 0x2221_201F_1E1D_1C1B)

    @Test("every field has its offset, least significant byte first")
    func layout() {
        #expect(Self.header.encoded == Array("MPRT".utf8) + [2, 1] + Array(1...34))
        #expect(Array(Self.header.encoded.prefix(5)) == PacketHeader.magic + [PacketHeader.version])
        #expect(Self.header.encoded.count == PacketHeader.size)
    }

    @Test("what is encoded is read again, for every kind and extreme", arguments: PacketKind.allCases)
    func roundTrip(kind: PacketKind) {
        var header = Self.header
        header.kind = kind
        #expect(PacketHeader(header.encoded) == header)
        #expect(PacketHeader(header.encoded + [1, 2, 3]) == header)
        header = PacketHeader(
            kind: kind, descriptorCount: .max, messageID: .min, componentCount: .max, asks: .max, answers: .max,
            totalLength: .max)
        #expect(PacketHeader(header.encoded) == header)
        #expect(PacketHeader(PacketHeader(kind: kind).encoded) == PacketHeader(kind: kind))
        #expect(PacketHeader(header.words) == header)
        #expect(withUnsafeBytes(of: header.words) { Array($0) } == header.encoded)
        #expect(PacketHeader.kind(ofPacketWith: UInt64(littleEndian: header.words.0)) == kind)
    }

    @Test("a short packet, another magic, version or kind is no packet")
    func refused() {
        let bytes = Self.header.encoded
        for count in 0..<bytes.count { #expect(PacketHeader(Array(bytes.prefix(count))) == nil) }
        for index in 0..<5 {
            for value in UInt8.min ... .max where value != bytes[index] {
                var foreign = bytes
                foreign[index] = value
                if PacketHeader(foreign) != nil { Issue.record("byte \(index) was \(value)") }
                let first: UInt64 = foreign.littleEndian(at: 0)
                if PacketHeader.kind(ofPacketWith: first) != nil { Issue.record("byte \(index) was \(value)") }
                if PacketHeader((first.littleEndian, 0, 0, 0, 0)) != nil {
                    Issue.record("byte \(index) was \(value)")
                }
            }
        }
        for value in UInt8.min ... .max {
            var other = bytes
            other[5] = value
            #expect(PacketHeader(other)?.kind == PacketKind(rawValue: value))
        }
    }

    @Test("the numbers of the kinds are those of the wire format")
    func kinds() {
        #expect(PacketKind.allCases.map(\.rawValue) == Array(1...16) + Array(18...27))
        #expect(PacketHeader.packetLimit == PacketHeader.size + PacketHeader.payloadLimit)
    }
}
