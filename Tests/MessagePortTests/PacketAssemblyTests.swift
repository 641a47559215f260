// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("PacketAssembly", .leakCheck) struct PacketAssemblyTests {
    private static func message(_ total: UInt64, descriptors: UInt16 = 0) -> PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: descriptors, messageID: 5, componentCount: 1, asks: 11, answers: 22,
            totalLength: total)
    }

    /// A message that answers nothing.
    private static func request(_ total: Int) -> PacketHeader {
        var header = message(UInt64(total))
        header.answers = 0
        return header
    }

    @Test("a message of one packet is whole at once")
    func single() {
        let assembly = Assembler()
        #expect(
            assembly.accept(Self.message(3), payload: [1, 2, 3], descriptors: []).text
                == "message 5 [1, 2, 3] asks 11 answers 22")
        #expect(assembly.isBegun == false)
        #expect(
            assembly.accept(Self.message(0), payload: [], descriptors: []).text == "message 5 [] asks 11 answers 22")
    }

    @Test("a message of several packets is whole with the last, with the tokens of the first")
    func several() {
        let assembly = Assembler()
        #expect(assembly.accept(Self.message(5), payload: [1, 2], descriptors: []).text == "incomplete")
        #expect(assembly.isBegun == true)
        #expect(
            assembly.accept(PacketHeader(kind: .continuation), payload: [3, 4], descriptors: []).text == "incomplete")
        #expect(
            assembly.accept(PacketHeader(kind: .continuation, messageID: 9, asks: 1), payload: [5], descriptors: [])
                .text
                == "message 5 [1, 2, 3, 4, 5] asks 11 answers 22")
        #expect(assembly.isBegun == false)
    }

    @Test("an abort discards what was begun, and its descriptors close")
    func abort() throws {
        let assembly = Assembler()
        try expectNoNewDescriptors {
            let descriptor = SharedDescriptor(try sysPacketSocket())
            #expect(
                assembly.accept(Self.message(5, descriptors: 1), payload: [1], descriptors: [descriptor]).text
                    == "incomplete")
            #expect(assembly.accept(PacketHeader(kind: .abort), payload: [], descriptors: []).text == "incomplete")
        }
        #expect(assembly.isBegun == false)
        #expect(
            assembly.accept(Self.message(1), payload: [7], descriptors: []).text == "message 5 [7] asks 11 answers 22")
    }

    @Test("each kind of packet in each state does what the table says", arguments: PacketKind.allCases, [false, true])
    func table(kind: PacketKind, isBegun: Bool) {
        let assembly = Assembler()
        if isBegun { _ = assembly.accept(Self.message(4), payload: [1, 2], descriptors: []) }
        let header = PacketHeader(kind: kind, messageID: 17, componentCount: 1, asks: 8, answers: 6, totalLength: 2)
        let event = assembly.accept(header, payload: kind.examplePayload, descriptors: []).text
        let expected =
            switch (kind, isBegun) {
            case (.message, false): "message 17 [3, 4] asks 8 answers 6"
            case (.message, true): "violation"
            case (.continuation, false): "violation"
            case (.continuation, true): "message 5 [1, 2, 3, 4] asks 11 answers 22"
            case (.abort, false): "violation"
            case (.abort, true): "incomplete"
            case (.replyDropped, false): "reply 6 dropped because 17, unread"
            case (.replyDropped, true): "violation"
            case (.refused, _): "refused 17"
            case (.replyFailed, false): "reply 6 failed with 17 \u{3}\u{4}"
            case (.replyFailed, true): "violation"
            case (.abandoned, false): "abandoned 8"
            case (.abandoned, true): "violation"
            case (.portEnded, false), (.moved, false), (.owner, false), (.handOver, false): kind.noticeText
            case (.credit, _), (.port, _), (.portEnded, true), (.moved, true), (.owner, true), (.handOver, true):
                "violation"
            case (.ring, _), (.ringAnswer, _), (.pathChange, _), (.wakeUp, _), (.presence, _): "violation"
            case (.returned, false): "returned 8 to 2, unknown segment: true"
            case (.segmentEnded, false): "segment 8 of 2 ended"
            case (.returnPage, _), (.returned, true), (.segmentEnded, true): "violation"
            case (.statistics, false): "7 messages at 6"
            case (.tap, false): "tapped: true"
            case (.shown, false): "shown 8: 17 [3, 4]"
            case (.probe, false): "probe 2 of 6, round 17, about 8"
            case (.probeAnswer, false): "probe 2 of 8, round 17, about 6: true"
            case (.statistics, true), (.tap, true), (.shown, true), (.probe, true), (.probeAnswer, true): "violation"
            }
        #expect(event == expected)
    }

    @Test(
        "a packet of the flow control is the number of a connection, or a question, with memory or without")
    func credit() throws {
        let file = try SentCount.make().file
        func text(_ count: UInt32, _ descriptors: [SharedDescriptor], asks: UInt64 = 8, answers: UInt64 = 0) -> String {
            let header = PacketHeader(
                kind: .credit, descriptorCount: UInt16(descriptors.count), componentCount: count, asks: asks,
                answers: answers)
            return Assembler().accept(header, payload: [], descriptors: descriptors).text
        }
        #expect(text(0, []) == "credit 8")
        #expect(text(1, [file]) == "credit 8: room")
        #expect(text(2, []) == "credit 8: wait")
        #expect(text(3, []) == "credit 8: reading")
        #expect(text(4, []) == "credit 8: probing")
        #expect([text(0, [file]), text(5, [])] == ["violation", "violation"])
        #expect(text(1, [file, file]) == "violation")
        #expect(text(1, [], asks: 0) == "violation")
        #expect(text(1, [], answers: 1) == "violation")
    }

    @Test("a payload or descriptors where none belong are a violation", arguments: PacketKind.allCases)
    func unwanted(kind: PacketKind) throws {
        let descriptor = SharedDescriptor(try sysPacketSocket())
        for isBegun in [false, true] {
            for (payload, descriptors) in [([1], []), ([], [descriptor])] as [([UInt8], [SharedDescriptor])] {
                if kind == .message || kind == .continuation && descriptors.isEmpty { continue }
                if kind == .replyFailed && !isBegun && descriptors.isEmpty { continue }
                if kind == .presence || kind == .returnPage, payload.isEmpty { continue }
                let assembly = Assembler()
                if isBegun { _ = assembly.accept(Self.message(4), payload: [1, 2], descriptors: []) }
                let header = PacketHeader(kind: kind, descriptorCount: UInt16(descriptors.count))
                #expect(assembly.accept(header, payload: payload, descriptors: descriptors).text == "violation")
            }
        }
    }

    @Test("false lengths, counts and descriptors are violations")
    func falseCounts() throws {
        let descriptor = SharedDescriptor(try sysPacketSocket())
        func violates(_ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor] = []) -> Bool {
            let assembly = Assembler()
            return assembly.accept(header, payload: payload, descriptors: descriptors).text == "violation"
        }
        #expect(violates(Self.message(2), [1, 2, 3]))
        #expect(violates(Self.message(0), [1]))
        #expect(violates(Self.message(1, descriptors: 1), [1]))
        #expect(violates(Self.message(1), [1], [descriptor]))
        #expect(violates(Self.message(1, descriptors: 2), [1], [descriptor]))
        #expect(violates(Self.message(UInt64(MessageLimits.payload) + 1), [1]))
        #expect(violates(Self.message(.max), [1]))
        var many = Self.message(1)
        many.componentCount = UInt32(MessageLimits.components) + 1
        #expect(violates(many, [1]))
        many.componentCount = .max
        #expect(violates(many, [1]))
        var assembly = Assembler()
        _ = assembly.accept(Self.message(3), payload: [1], descriptors: [])
        #expect(
            assembly.accept(PacketHeader(kind: .continuation), payload: [2, 3, 4], descriptors: []).text == "violation")
        assembly = Assembler()
        _ = assembly.accept(Self.message(3), payload: [1], descriptors: [])
        #expect(assembly.accept(PacketHeader(kind: .continuation), payload: [], descriptors: []).text == "violation")
    }

    private static let piece = PacketHeader(kind: .continuation)

    /// Has bytes written after what was begun.
    private static func land(_ bytes: [UInt8], in assembly: inout PacketAssembly) throws -> Int {
        try assembly.land { (room) throws(SystemError) in
            for byte in bytes.prefix(room.freeCapacity) { room.append(byte) }
        }
    }

    @Test("a piece may be written in its final position, as much as is missing and no more")
    func landing() throws {
        var assembly = PacketAssembly()
        #expect(assembly.hasRoomForPiece == false)
        _ = assembly.accept(Self.message(5), payload: [1, 2], descriptors: [])
        #expect(assembly.hasRoomForPiece == true)
        #expect(try Self.land([3], in: &assembly) == 1)
        #expect(assembly.didLand(1, Self.piece, descriptors: []).text == "incomplete")
        #expect(try Self.land([4, 5, 6, 7], in: &assembly) == 2)
        #expect(assembly.didLand(2, Self.piece, descriptors: []).text == "message 5 [1, 2, 3, 4, 5] asks 11 answers 22")
        #expect(assembly.hasRoomForPiece == false)
    }

    @Test("what was written and is no piece is undone, and the message goes on")
    func removeWritten() throws {
        var assembly = PacketAssembly()
        _ = assembly.accept(Self.message(5), payload: [1, 2], descriptors: [])
        let count = try Self.land([9, 9], in: &assembly)
        #expect(assembly.removeWritten(count) == [9, 9])
        #expect(assembly.removeWritten(0) == [])
        _ = try Self.land([3, 4, 5], in: &assembly)
        #expect(
            assembly.didLand(3, Self.piece, descriptors: []).text == "message 5 [1, 2, 3, 4, 5] asks 11 answers 22")
    }

    @Test("descriptors that a packet has no room for come with the next ones; lost with one of them, all are")
    func descriptorsOfPieces() throws {
        let many = Array(repeating: SharedDescriptor(try sysPacketSocket()), count: 254)
        // What the head announces, what the pieces say and bring (nil if lost), and what comes of it.
        let cases: [(Int, [(said: Int, came: Int?)], String)] = [
            (500, [(247, 247), (0, 0)], "message"), (500, [(247, nil), (0, 0)], "without descriptors"),
            (254, [(1, 1), (0, 0)], "message"), (254, [(0, 0), (1, 1)], "violation"), (253, [(1, 1)], "violation"),
            (500, [(246, 246)], "violation"), (500, [(247, 246)], "violation"), (500, [(248, nil)], "violation"),
            (500, [(0, 0)], "violation"), (254, [], "violation"), (501, [], "violation"), (65_535, [], "violation"),
        ]
        for (announced, pieces, text) in cases {
            var assembly = PacketAssembly()
            var head = Self.message(UInt64(1 + pieces.count))
            head.descriptorCount = UInt16(announced)
            var event = assembly.accept(head, payload: [1], descriptors: Array(many.prefix(253)))
            for (said, came) in pieces where assembly.isBegun {
                let piece = PacketHeader(kind: .continuation, descriptorCount: UInt16(said))
                event = assembly.accept(piece, payload: [2], descriptors: came.map { Array(many.prefix($0)) })
            }
            #expect(event.text.hasPrefix(text), "\(announced) \(pieces)")
            if case .message(let message, _, _) = event { #expect(message.descriptors.count == announced) }
        }
    }

    @Test("nothing written, a piece with descriptors, and a piece of nothing are violations")
    func badLanding() throws {
        let descriptor = SharedDescriptor(try sysPacketSocket())
        for (bytes, descriptors) in [([], []), ([3], [descriptor])] as [([UInt8], [SharedDescriptor])] {
            var assembly = PacketAssembly()
            _ = assembly.accept(Self.message(5), payload: [1, 2], descriptors: [])
            let count = try Self.land(bytes, in: &assembly)
            #expect(assembly.didLand(count, Self.piece, descriptors: descriptors).text == "violation")
        }
        var assembly = PacketAssembly()
        _ = assembly.accept(Self.message(5), payload: [1, 2], descriptors: [])
        let lie = PacketHeader(kind: .continuation, descriptorCount: 2)
        #expect(try assembly.didLand(Self.land([3], in: &assembly), lie, descriptors: []).text == "violation")
        #expect(try Self.land([1], in: &assembly) == 0)
        #expect(assembly.didLand(1, Self.piece, descriptors: []).text == "violation")
    }

    @Test("wherever a message is cut, it is the same; its last body has memory of its own when it begins a packet")
    func cuts() throws {
        let whole = try EncodedMessage(MachMessage(id: 5, components: [.bytes([1, 2, 3]), .bytes([4, 5, 6, 7])]))
        var header = Self.message(UInt64(whole.size))
        header.componentCount = 2
        for cut in 0..<whole.size {
            var assembly = PacketAssembly()
            _ = assembly.accept(header, payload: Array(whole.payload.prefix(cut)), descriptors: [])
            let rest = Array(whole.payload.dropFirst(cut))
            let event = try assembly.didLand(Self.land(rest, in: &assembly), Self.piece, descriptors: [])
            guard case .message(let message, _, _) = event else { throw NoMessage() }
            #expect(message.tail == (cut == whole.size - 4 ? [4, 5, 6, 7] : []), "\(cut)")
            let decoded = message.decoded { address, _ in SendRight(DeadPort(address)) }
            #expect(decoded?.parts.count == 2 && decoded?.parts.byteCount == 7, "\(cut)")
        }
    }

    private struct NoMessage: Error {}

    @Test("of a message that is too large nothing is written")
    func landingTooLarge() {
        var assembly = PacketAssembly()
        _ = assembly.accept(Self.request(20), payload: [1], descriptors: [], limit: 19)
        #expect(assembly.isBegun && !assembly.hasRoomForPiece)
    }

    @Test("lost descriptors make a whole message without them, which keeps its tokens")
    func lostDescriptors() {
        let assembly = Assembler()
        #expect(assembly.accept(Self.message(2, descriptors: 3), payload: [1], descriptors: nil).text == "incomplete")
        #expect(
            assembly.accept(PacketHeader(kind: .continuation), payload: [2], descriptors: []).text
                == "without descriptors, asks 11 answers 22")
        #expect(
            assembly.accept(Self.message(1, descriptors: 3), payload: [1], descriptors: nil).text
                == "without descriptors, asks 11 answers 22")
    }

    @Test("a message is stored up to the limit of its port, which may be the largest that there is")
    func portLimit() {
        let largest = Self.request(MessageLimits.payload)
        let last = Self.request(PeerLimits.standard.messageBytes)
        let next = Self.request(PeerLimits.standard.messageBytes + 1)
        let isAccepted = { (header: PacketHeader, limit: Int) in
            var assembly = PacketAssembly()
            _ = assembly.accept(header, payload: [1], descriptors: [], limit: limit)
            return !assembly.isPartialTooLarge
        }
        #expect(isAccepted(largest, MessageLimits.payload))
        #expect(isAccepted(last, PeerLimits.standard.messageBytes))
        #expect(!isAccepted(next, PeerLimits.standard.messageBytes))
    }

    @Test("an answer that is not awaited is not stored, and the next message is read", arguments: [false, true])
    func unwanted(lacksDescriptors: Bool) throws {
        var assembly = PacketAssembly()
        try expectNoNewDescriptors {
            let descriptors = lacksDescriptors ? nil : [SharedDescriptor(try sysPacketSocket())]
            let first = assembly.accept(
                Self.message(5, descriptors: 1), payload: [1, 2], descriptors: descriptors, isWanted: false)
            #expect(first.text == "incomplete" && assembly.isBegun && !assembly.mayNeedSlot)
        }
        let last = assembly.accept(PacketHeader(kind: .continuation), payload: [3, 4, 5], descriptors: [])
        #expect(last.text == "unwanted, asks 11" && !assembly.isBegun)
        let next = assembly.accept(Self.message(1), payload: [7], descriptors: [])
        #expect(next.text == "message 5 [7] asks 11 answers 22")
    }

    @Test("of an announced size 16 MiB are reserved, and then no more than twice what has come")
    func announced() throws {
        var assembly = PacketAssembly()
        _ = assembly.accept(Self.message(UInt64(MessageLimits.payload)), payload: [1], descriptors: [])
        let slack = 1 << 16
        #expect(assembly.capacity <= 16 << 20 + slack)
        var arrived = 1
        while arrived < 20 << 20 {
            let count = try assembly.land { (room) throws(SystemError) in
                room.append(repeating: 7, count: room.freeCapacity)
            }
            arrived += count
            #expect(assembly.didLand(count, Self.piece, descriptors: []).text == "incomplete")
            if assembly.capacity > max(16 << 20, 2 * arrived) + slack { Issue.record("at \(arrived)") }
        }
    }

    @Test("what was announced reserves no more than is missing")
    func exact() throws {
        var assembly = PacketAssembly()
        _ = assembly.accept(Self.message(1 << 20), payload: [1], descriptors: [])
        #expect(assembly.capacity <= 1 << 20 + 1 << 12)
    }
}

/// An assembly in a box, so that expectations can change it.
private final class Assembler {
    private var assembly = PacketAssembly()

    var isBegun: Bool { assembly.isBegun }

    func accept(_ header: PacketHeader, payload: [UInt8], descriptors: [SharedDescriptor]?) -> PacketAssembly.Event {
        assembly.accept(header, payload: payload, descriptors: descriptors)
    }
}

extension PacketKind {
    fileprivate var examplePayload: [UInt8] {
        switch self {
        case .message, .continuation, .replyFailed: [3, 4]
        case .statistics: [7] + [UInt8](repeating: 0, count: 79)
        case .shown: [UInt8](repeating: 0, count: 8) + [3, 4]
        default: []
        }
    }

    fileprivate var noticeText: String {
        [.moved: "port moved", .owner: "owner named", .handOver: "handed over: done"][self] ?? "port ended"
    }
}

extension PacketAssemblyTests {
    @Test(
        "a message above the port's own limit is not stored, and the next one is read; an answer has no such limit"
    )
    func tooLarge() {
        var assembly = PacketAssembly()
        var header = PacketHeader(kind: .message, componentCount: 1, asks: 3, totalLength: 20)
        let piece = [UInt8](repeating: 0, count: 10)
        let first = assembly.accept(header, payload: piece, descriptors: [], limit: 19)
        #expect(first.text == "incomplete" && assembly.isPartialTooLarge && assembly.mayNeedSlot)
        let last = assembly.accept(PacketHeader(kind: .continuation), payload: piece, descriptors: [])
        #expect(last.text == "too large, asks 3" && !assembly.isBegun)
        header.answers = 1
        let answer = assembly.accept(header, payload: piece + piece, descriptors: [], limit: 19)
        #expect(answer.text.hasPrefix("message"))
    }
}
