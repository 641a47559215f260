// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

// The hexadecimal examples of Docs/WireFormat.md are what this library sends, and it reads them back.
@Suite("Documents: the wire format", .leakCheck(warmingUp: warmUpIOThread))
struct WireFormatDocumentTests {
    private static let path = "/run/user/1000/swift-ports/sockets/0123456789abcdef0123456789abcdef.1"
    /// The number of the connection in the packets of the flow control.
    private static let number: UInt64 = 0x8F3A_61C4_27D9_0B5E
    private static var right: SendRight { SendRight(DeadPort(PortAddress(path: path))) }

    /// The right with the end of a pipe.
    private static func counted() throws -> SendRight {
        SendRight(DeadPort(PortAddress(path: path)), with: ReceivedEnd(try PresencePipe().writing))
    }

    /// The examples of the page, by name.
    private static func examples() throws -> [String: [UInt8]] {
        let blocks = try Document("Docs/WireFormat.md").fenced.filter { $0.information.hasPrefix("hex ") }
        let named = blocks.map { block in
            (
                String(block.information.dropFirst(4)),
                block.contents.split { $0.isWhitespace }.map { UInt8($0, radix: 16) }
            )
        }
        return try Dictionary(uniqueKeysWithValues: named).mapValues { bytes in
            try bytes.map { try #require($0) }
        }
    }

    @Test("each packet of the page is what a connection sends")
    func sentPackets() throws {
        var sent: [String: [UInt8]] = [:]
        sent["request"] = try packets { connection in
            var request = MachMessage(id: 101, text: "hello")
            request.replyTarget = ReplyTarget(UnusedReceiver())
            try connection.send(request, until: .never)
        }.first
        sent["confirmed"] = try packets { connection in
            let message = MachMessage(id: 101, text: "hello").asking(UnusedReceiver(), confirming: .taken)
            try connection.send(message, until: .never)
        }.first
        sent["reply"] = try packets { try $0.send(MachMessage(id: 101, text: "5"), answering: 1, until: .never) }
            .first
        sent["check-in"] = try packets {
            try $0.send(MachMessage(id: 100, replyPort: Self.right), until: .never)
        }.first
        sent["components"] = try packets { connection in
            let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
            let parts: [MachMessage.Component] = [.bytes(Array("log".utf8)), .descriptor(file), .right(Self.right)]
            try connection.send(MachMessage(id: -1, components: parts), until: .never)
        }.first
        let large = MachMessage(bytes: [UInt8](repeating: 7, count: PacketHeader.payloadLimit))
        let pieces = try packets { try $0.send(large, until: .never) }
        #expect(pieces.map(\.count) == [PacketHeader.packetLimit, PacketHeader.size + 8])
        sent["continuation-head"] = pieces.last.map { Array($0.prefix(PacketHeader.size)) }
        sent["abort"] = PacketHeader(kind: .abort).encoded
        sent["reply-dropped"] = try packets { $0.dropReply(to: 1) }.first
        sent["not-read"] = try packets { $0.dropReply(to: 1, because: .peerDied, delivery: .unread) }.first
        sent["reply-failed"] = try packets { $0.failReply(to: 1, code: 5, text: "full") }.first
        sent["abandoned"] = try packets { connection in
            var request = MachMessage()
            request.replyTarget = ReplyTarget(UnusedReceiver())
            try connection.send(request, until: .never)
            connection.giveUp(token: 1)
        }.last
        sent["port-ended"] = try packets { $0.sendPortEnded() }.first
        sent["descriptors-lost"] = try packets { $0.dropReply(to: 1, because: .descriptorsLost) }.first
        sent["refused"] = try packets { SocketConnection.sendRefusal(.peerRefused, to: $0.descriptor) }.first
        sent["ring"] = try packets { connection in
            connection.useRings(.always)
            connection.offerRingsIfDue()
        }.first
        sent["ring-answer"] = PacketHeader(kind: .ringAnswer, descriptorCount: 2).encoded
        sent["path-change"] = PacketHeader(kind: .pathChange).encoded
        sent["wake-up"] = PacketHeader(kind: .wakeUp).encoded
        sent["counted-right"] = try packets { connection in
            try connection.send(MachMessage(components: [.right(Self.counted())]), until: .never)
        }.first
        sent["counted-reply-port"] = try packets { connection in
            let right = try Self.counted()
            try connection.send(MachMessage(components: [.right(right)], replyPort: right), until: .never)
        }.first
        sent["presence"] = PacketHeader.presence.encoded
        sent.merge(try queries()) { $1 }
        sent.merge(try credits()) { $1 }
        let probe = WaitProbe(start: WaitNumber(time: 86_400_000_000_000, secret: Self.number), round: 0)
        sent["probe"] = try packets { $0.send(probe, about: 1) }.first
        sent["probe-answer"] = try packets { $0.answer(probe, about: 1, hasReturned: true) }.first
        sent.merge(try memory()) { $1 }
        let examples = try Self.examples()
        for (name, bytes) in sent { #expect(examples[name] == bytes, "\(name)") }
        #expect(Set(examples.keys) == Set(sent.keys))
    }

    /// What is sent by and to a peer that queries or taps a port.
    private func queries() throws -> [String: [UInt8]] {
        var sent: [String: [UInt8]] = [:]
        sent["statistics-question"] = PacketHeader(kind: .statistics, asks: 1).encoded
        let port = MachPort()
        try port.makeSendRight().send(MachMessage(id: 101, text: "hello"), within: .zero)
        sent["statistics"] = try packets { $0.answerStatisticsQuery(1, about: port.localPort) }.first
        sent["tap"] = PacketHeader(kind: .tap, totalLength: 64).encoded
        sent["tap-answer"] = try packets { $0.answerTap(true) }.first
        var message = MachMessage(id: 101, text: "hello")
        message.remoteSender = PeerIdentity(processID: 4711, userID: 1000, groupID: 1000)
        let shown = TappedMessage(message, number: 1, byteLimit: 64)
        sent["shown"] = try packets { $0.offerAside(shown.packet) }.first
        return sent
    }

    /// What lenders and borrowers send.
    private func memory() throws -> [String: [UInt8]] {
        var sent: [String: [UInt8]] = [:]
        let (pool, deadline) = (MemoryPool(), Watchdog.deadline)
        var loan = try #require(
            try packets { connection in
                let memory = try pool.loan(3_000_000).freeze()
                for _ in 0..<2 { try connection.send(MachMessage(id: 7, memory: memory), until: .never) }
            }.last)
        // The kernel closes what was sent, and not read.
        while pool.lentByteCount > 0, .now < deadline { yieldThread() }
        // Instead of a random number, and of one that depends on other tests.
        loan.replaceSubrange(48..<56, with: bytes(of: Self.number))
        loan.replaceSubrange(64..<72, with: bytes(of: 5))
        sent["loan"] = loan
        sent["return-page"] = PacketHeader.returnPage(to: Self.number).encoded
        sent["returned"] = PacketHeader.returned(2, to: Self.number, isSegmentUnknown: false).encoded
        sent["segment-ended"] = PacketHeader.segmentEnded(5, of: Self.number).encoded
        return sent
    }

    private func bytes(of number: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: number)
        return bytes
    }

    /// What the two sides of the flow control send.
    private func credits() throws -> [String: [UInt8]] {
        var sent: [String: [UInt8]] = [:]
        sent["credit-number"] = try packets { connection in
            var naming = SendCredit.naming()
            naming.header.asks = Self.number  // instead of a random one
            connection.enqueue(naming)
        }.first
        sent["credit-question"] = try packets { connection in
            let file = try SentCount.make().file
            let question = CreditQuestion(key: Self.number, purpose: .room, sentCount: file)
            _ = try CreditQuery(question, over: connection.descriptor)
        }.first
        sent["credit-answer"] = try packets { connection in
            let grant = CreditGrant(page: try GrantPage(), index: 3)
            connection.enqueue(OutgoingPacket(.granted(grant), to: Self.number))
        }.first
        return sent
    }

    @Test("each packet of the page is read as the page says")
    func readPackets() throws {
        let examples = try Self.examples()
        for (name, bytes) in examples {
            let header = try #require(PacketHeader(bytes), "\(name)")
            #expect(header.encoded == Array(bytes.prefix(PacketHeader.size)), "\(name)")
        }
        let components = try message("components", examples)
        #expect(components.id == -1 && components.bytes == Array("log".utf8))
        #expect(components.descriptors.count == 1 && components.rights.count == 1)
        #expect(try components.rights.map { try $0.destination.address().path } == [Self.path])
        let checkIn = try message("check-in", examples)
        #expect(checkIn.id == 100 && checkIn.components.isEmpty)
        #expect(try checkIn.replyPort?.destination.address().path == Self.path)
        #expect(try message("request", examples).text == "hello")
        #expect(try message("reply", examples).text == "5")
        guard case .statistics(let statistics, 1) = try event("statistics", examples),
            case .shown(let shown) = try event("shown", examples)
        else { throw NotAMessage(name: "statistics, shown") }
        #expect(statistics.messageCount == 1 && statistics.byteCount == 5 && statistics.queueLimit == 64)
        #expect(shown.id == 101 && shown.sender == 4711 && shown.bytes == Array("hello".utf8))
        #expect(!shown.expectsReply && shown.byteCount == 5)
        guard case .probed(let probe, token: 1) = try event("probe", examples),
            case .probeAnswered(probe, token: 1, hasReturned: true) = try event("probe-answer", examples)
        else { throw NotAMessage(name: "probe, probe-answer") }
        #expect(probe.start.time == 86_400_000_000_000 && probe.start.secret == Self.number && probe.round == 0)
        guard case .creditOpened(let key) = try event("credit-number", examples),
            case .creditAsked(let question) = try event("credit-question", examples),
            case .granted(let grant)? = try answer("credit-answer", examples)
        else { throw NotAMessage(name: "credit") }
        #expect(key == Self.number && question.key == Self.number)
        #expect(question.purpose == .room && question.sentCount != nil)
        #expect(grant.index == 3 && grant.page != nil)
        #expect(PacketHeader(examples["credit-answer"] ?? [])?.answers == Self.number)
    }

    @Test("rights with the end of a pipe are read as the page says, and so is the read end")
    func readCounted() throws {
        let examples = try Self.examples()
        let right = try message("counted-right", examples)
        #expect(try right.rights.map { try $0.destination.address().path } == [Self.path])
        let both = try message("counted-reply-port", examples)
        #expect(both.rights.count == 1 && both.replyPort != nil)
        guard case .presence(.some) = try event("presence", examples) else { throw NotAMessage(name: "presence") }
    }

    /// What a sender that has asked for room makes of the answer.
    private func answer(_ name: String, _ examples: [String: [UInt8]]) throws -> CreditQuery.Answer? {
        let bytes = try #require(examples[name])
        let (near, far) = try sysPacketSocketPair()
        // Closed with the question unread, it would reset the connection.
        defer { withExtendedLifetime(far) {} }
        let query = try CreditQuery(CreditQuestion(key: Self.number, purpose: .room), over: near)
        let page = try GrantPage()
        _ = try sysSendPacket(far.rawValue, head: bytes, body: [], descriptors: [page.file])
        return query?.receive()
    }

    private func message(_ name: String, _ examples: [String: [UInt8]]) throws -> MachMessage {
        guard case .message(let encoded, _, _) = try event(name, examples) else { throw NotAMessage(name: name) }
        return try #require(encoded.decoded { address, _ in SendRight(DeadPort(address)) })
    }

    private func event(_ name: String, _ examples: [String: [UInt8]]) throws -> PacketAssembly.Event {
        let bytes = try #require(examples[name])
        let header = try #require(PacketHeader(bytes))
        let files = try (0..<header.descriptorCount).map { _ in SharedDescriptor(try sysOpen("/dev/null", .reading)) }
        var assembly = PacketAssembly()
        return assembly.accept(header, payload: Array(bytes.dropFirst(PacketHeader.size)), descriptors: files)
    }

    /// What the other end of a connection gets.
    private func packets(_ send: (SocketConnection) throws -> Void) throws -> [[UInt8]] {
        let (near, far) = try sysPacketSocketPair()
        let connection = try SocketConnection(near, port: nil)
        connection.useRings(.never)
        try send(connection)
        var packets: [[UInt8]] = []
        while case (.packet, let bytes) = try sysReceivePacket(far.rawValue, limit: PacketHeader.packetLimit) {
            packets.append(bytes)
        }
        return packets
    }

    private struct NotAMessage: Error {
        var name: String
    }

    private final class UnusedReceiver: ReplyReceiver {
        func deliver(_ message: MachMessage, until deadline: MonotonicInstant) {}
        func fail(_ error: PortError) {}
        func expectReply(over connection: any ReplyConnection) {}
    }
}
