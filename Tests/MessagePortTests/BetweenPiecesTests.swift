// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Testing

/// What may come between the pieces of a message.
@Suite("between two pieces") struct BetweenPiecesTests {
    @Test("between the pieces of a message come whole ones, of no more bytes than the pieces have, or are missing")
    func betweenPieces() {
        let begun = PacketHeader(kind: .message, componentCount: 1, totalLength: 4_000)
        func between(_ size: Int, after piece: Int, in assembly: inout PacketAssembly) -> String {
            _ = assembly.accept(begun, payload: [UInt8](repeating: 1, count: piece), descriptors: [])
            let header = PacketHeader(kind: .message, messageID: 4, componentCount: 1, totalLength: UInt64(size))
            let event = assembly.accept(header, payload: [UInt8](repeating: 2, count: size), descriptors: [])
            return event.text.hasPrefix("message 4") ? "message" : event.text
        }
        func between(_ size: Int, after piece: Int) -> String {
            var assembly = PacketAssembly()
            return between(size, after: piece, in: &assembly)
        }
        // What the pieces have.
        #expect(between(160, after: 1_000) == "message")
        #expect(between(161, after: 1_000) == "violation")
        // What is missing.
        #expect(between(160, after: 3_000) == "message")
        #expect(between(161, after: 3_000) == "violation")
        var assembly = PacketAssembly()
        #expect(between(160, after: 1_000, in: &assembly) == "message")
        let piece = [UInt8](repeating: 1, count: 1_000)
        #expect(
            assembly.accept(PacketHeader(kind: .continuation), payload: piece, descriptors: []).text == "incomplete")
        let empty = PacketHeader(kind: .message, messageID: 5)
        for isAccepted in [true, false] {
            let event = assembly.accept(empty, payload: [], descriptors: [])
            #expect((event.text != "violation") == isAccepted)
        }
    }

    @Test("no message comes between the pieces of a reply, and none with descriptors, in pieces, or that answers")
    func notBetweenPieces() {
        func event(_ begun: PacketHeader, _ next: PacketHeader, _ payload: [UInt8]) -> String {
            var assembly = PacketAssembly()
            let first = assembly.accept(begun, payload: [UInt8](repeating: 1, count: 1_000), descriptors: [])
            #expect(first.text == "incomplete")
            return assembly.accept(next, payload: payload, descriptors: []).text
        }
        let begun = PacketHeader(kind: .message, componentCount: 1, totalLength: 2_000)
        let reply = PacketHeader(kind: .message, componentCount: 1, answers: 1, totalLength: 2_000)
        var whole = PacketHeader(kind: .message, messageID: 4, componentCount: 1, totalLength: 2)
        #expect(event(begun, whole, [1, 2]).hasPrefix("message 4"))
        #expect(event(reply, whole, [1, 2]) == "violation")
        whole.asks = 7
        #expect(event(begun, whole, [1, 2]).hasPrefix("message 4"))
        var asking = begun
        asking.asks = 7
        #expect(event(asking, whole, [1, 2]) == "violation")
        #expect(event(begun, whole, [1]) == "violation")
        #expect(event(begun, PacketHeader(kind: .message, answers: 1), []) == "violation")
        #expect(event(begun, PacketHeader(kind: .credit, asks: 1), []) == "violation")
    }
}
