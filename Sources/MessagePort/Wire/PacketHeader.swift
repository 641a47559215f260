// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// The fixed head of every packet, 40 bytes, numbers in little-endian order. Docs/WireFormat.md is its specification.
//
//   0 magic "MPRT"   4 version   5 kind   6 descriptor count (16 bits)   8 message id   12 component count
//   16 asks: the token for a reply, zero when none is wanted
//   24 answers: the token of the message that this replies to; of a message to be confirmed, when
//   32 length of the whole message's payload

enum PacketKind: UInt8, CaseIterable, Sendable {
    /// The first packet of a message: to the port, or, when it answers a token, to the requester. It has another number
    /// when its sender wants a confirmation: `PacketHeader.confirmation`.
    case message = 1
    /// A further piece of the partial message.
    case continuation = 2
    /// The message that asked with the token will not be answered; the message id holds an error code, or zero when its
    /// receiver dropped the reply right.
    case replyDropped = 3
    /// The partial message will not be completed.
    case abort = 4
    /// The listener does not talk to this client; the message id holds the error code.
    case refused = 5
    /// The message that asked with the token is answered with an error: the message id is the receiver's own number,
    /// the payload its text.
    case replyFailed = 6
    /// The requester no longer waits for a reply to the message that asked with the token.
    case abandoned = 7
    /// The port is gone, but owes replies, which will still come.
    case portEnded = 8
    /// The right's end offers rings: the packet's descriptors are its memory and, if it has one, its wake channel.
    case ring = 9
    /// The port's end has the rings too, or, with an error code as the message id, declines them.
    case ringAnswer = 10
    /// The sender's further packets are in its ring, up to a mark there. It also wakes the consumer, as `wakeUp` does.
    case pathChange = 11
    /// Wakes the consumer of the sender's ring: there is data in it that nothing else would report.
    case wakeUp = 12
    /// From the right's end: asks for the port's statistics. From the port's end, under the token of that: the answer;
    /// the payload is numbers.
    case statistics = 13
    /// From the right's end: asks for copies of the messages that are dequeued. From the port's end: accepted, refused, or
    /// ended.
    case tap = 14
    /// The head of a dequeued message, and the beginning of its bytes.
    case shown = 15
    /// From the right's end: the number of the connection, or, over a connection for this alone, a sender's question for
    /// room, under that number. From the port's end, under it: the answer.
    case credit = 16
    /// From the right's end: asks whether a thread may answer the request that asked with the token.
    case probe = 18
    /// From the port's end: none may, as far as can be reached.
    case probeAnswer = 19
    /// From the right's end, on the socket: the packet's descriptor is the read end of a pipe, whose write ends travel
    /// with rights to the port that this process passes on.
    case presence = 20
    /// From the port's end: the port has moved to another process, which counts anew what may be sent.
    case moved = 21
    /// Not over a connection: a part of a port that moves to another process.
    case port = 22
    /// From the right's end: asks that the port be handed over to another one, whose address is the payload. From the
    /// port's end: what became of that.
    case handOver = 23
    /// From the port's end, after `moved`: the kernel says with it which process the port's owner is.
    case owner = 24
    /// From a borrower, on the socket: the packet's descriptor is the page on which it notes the loans that it returns to
    /// the lender whose number is the total length.
    case returnPage = 25
    /// From a borrower: it has returned the loan with the number `asks` to that lender.
    case returned = 26
    /// From a lender, with its number: the segment with the number `asks` has ended.
    case segmentEnded = 27

    /// Whether `answers` has a token.
    var mayAnswer: Bool {
        self == .message || self == .replyDropped || self == .replyFailed || self == .probeAnswer
    }
}

struct PacketHeader: Hashable, Sendable {
    static let size = 40
    static let magic: [UInt8] = Array("MPRT".utf8)
    static let version: UInt8 = 2
    /// The largest packet, head and payload together.
    static let packetLimit = 65_536
    static let payloadLimit = packetLimit - size

    var kind: PacketKind
    var descriptorCount: UInt16 = 0
    var messageID: Int32 = 0
    var componentCount: UInt32 = 0
    var asks: UInt64 = 0
    var answers: UInt64 = 0
    var totalLength: UInt64 = 0
    /// When the message that asks under the token is to be confirmed, by an empty reply; nil for all others.
    var confirmation: SendConfirmation?
}

extension PacketHeader {
    /// The number of the kind of a message that is to be confirmed.
    static let confirmedMessage: UInt8 = 17

    var encoded: [UInt8] { bytes(of: words) }

    /// Reads a head; nil when the packet is shorter than a head or not of this format and version.
    init?(_ packet: [UInt8]) {
        guard let words = packetWords(of: packet) else { return nil }
        self.init(words)
    }

    /// How many descriptors come with this packet. The first packet of a message says how many the message has; those
    /// that are more than a packet may have come with the next ones.
    var ownDescriptorCount: Int {
        kind == .message ? min(Int(descriptorCount), packetDescriptorLimit) : Int(descriptorCount)
    }

    /// The head of a packet with the read end of a pipe.
    static let presence = PacketHeader(kind: .presence, descriptorCount: 1)

    /// The head of a packet with the page on which a borrower notes what it returns to the lender.
    static func returnPage(to lender: UInt64) -> PacketHeader {
        PacketHeader(kind: .returnPage, descriptorCount: 1, totalLength: lender)
    }

    /// A loan of the lender was returned; the component count says whether its segment is unknown.
    static func returned(_ number: UInt64, to lender: UInt64, isSegmentUnknown: Bool) -> PacketHeader {
        PacketHeader(kind: .returned, componentCount: isSegmentUnknown ? 1 : 0, asks: number, totalLength: lender)
    }

    /// A segment of the lender has ended, in which nothing was lent.
    static func segmentEnded(_ number: UInt64, of lender: UInt64) -> PacketHeader {
        PacketHeader(kind: .segmentEnded, asks: number, totalLength: lender)
    }

    /// Whether it only wakes the ring's consumer: such a packet holds nothing else.
    var isWakeUp: Bool { self == PacketHeader(kind: .wakeUp) || self == PacketHeader(kind: .pathChange) }

    /// Whether it is the only packet of a message, which has one part without descriptors and wants no confirmation.
    func announcesOnlyOnePart(of payloadSize: Int) -> Bool {
        componentCount == 1 && descriptorCount == 0 && totalLength == UInt64(payloadSize) && confirmation == nil
    }

    /// Its bytes as five numbers in little-endian order.
    var words: PacketWords {
        let kind = UInt64(confirmation == nil ? kind.rawValue : Self.confirmedMessage) << Self.kindShift
        let answers = confirmation?.rawValue ?? answers
        let first = Self.magicAndVersion | kind | UInt64(descriptorCount) << Self.countShift
        let second = UInt64(UInt32(bitPattern: messageID)) | UInt64(componentCount) << 32
        return (
            first.littleEndian, second.littleEndian, asks.littleEndian, answers.littleEndian, totalLength.littleEndian
        )
    }

    /// Reads a head; nil when it is not of this format and version.
    init?(_ words: PacketWords) {
        let (first, second) = (UInt64(littleEndian: words.0), UInt64(littleEndian: words.1))
        guard let kind = Self.kind(ofPacketWith: first) else { return nil }
        self.kind = kind
        descriptorCount = UInt16(truncatingIfNeeded: first >> Self.countShift)
        messageID = Int32(truncatingIfNeeded: second)
        componentCount = UInt32(truncatingIfNeeded: second >> 32)
        asks = UInt64(littleEndian: words.2)
        answers = UInt64(littleEndian: words.3)
        totalLength = UInt64(littleEndian: words.4)
        if Self.number(ofKindIn: first) != Self.confirmedMessage { return }
        guard let confirmation = SendConfirmation(rawValue: answers), asks != 0 else { return nil }
        self.confirmation = confirmation
        answers = 0
    }

    private static let magicAndVersion: UInt64 = 0x02_5452_504D
    /// The first bit of the kind in the first word, after magic and version.
    private static let kindShift = 40
    /// The first bit of the descriptor count there.
    private static let countShift = 48

    /// The kind of the packet that begins with these eight bytes, as one number; nil when it is not of this format.
    static func kind(ofPacketWith first: UInt64) -> PacketKind? {
        guard first & ((1 << kindShift) - 1) == magicAndVersion else { return nil }
        let number = number(ofKindIn: first)
        return number == confirmedMessage ? .message : PacketKind(rawValue: number)
    }

    private static func number(ofKindIn first: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: first >> kindShift) }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger>(littleEndian number: Number) {
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: number >> Number(shift)))
        }
    }

    func littleEndian<Number: FixedWidthInteger>(at offset: Int) -> Number {
        (0..<Number.bitWidth / 8).reduce(0) { $0 | Number(truncatingIfNeeded: self[offset + $1]) << (8 * $1) }
    }
}

/// The kind of a component of a message, as its record in a packet has it.
enum ComponentKind: UInt8, Sendable {
    case bytes = 1
    case right = 2
    case descriptor = 3
    case replyPort = 4
    /// A send right with the end of a pipe: the next descriptor.
    case countedRight = 5
    case countedReplyPort = 6
    /// A send right with the end of the last record before it that has its address and an end.
    case sharedRight = 7
    /// A receive right, no bytes: the port is inside the next descriptor of the message.
    case receiveRight = 8
    /// A loan of memory, for a component that follows: where it is. Before all other records.
    case loan = 9
    /// The same, with the segment's file and the end of a pipe: the next two descriptors.
    case loanInNewSegment = 10
    /// Memory that is lent: the next loan.
    case lentMemory = 11
    /// Memory that was copied: its bytes.
    case copiedMemory = 12
    /// Memory whose contents are sealed, how many bytes: its file is the next descriptor.
    case sealedMemory = 13

    /// Whether it is a right, and not a component.
    var isReplyPort: Bool { self == .replyPort || self == .countedReplyPort }
    var isRight: Bool { self == .right || self == .countedRight || self == .sharedRight || isReplyPort }
    /// Whether it takes a descriptor, the end of a pipe.
    var isCounted: Bool { self == .countedRight || self == .countedReplyPort }

    /// Whether it has the end of a pipe: its own, or that of a record before it.
    var hasEnd: Bool { isCounted || self == .sharedRight }

    /// Whether it is the place of a loan, and not a component.
    var isLoan: Bool { self == .loan || self == .loanInNewSegment }

    /// Whether a message begins with a loan.
    static func beginsWithLoan(_ payload: [UInt8]) -> Bool {
        payload.first.flatMap { ComponentKind(rawValue: $0) }?.isLoan ?? false
    }

    /// The bytes before a record's body.
    static let headSize = 8

    /// The head of a record with a body of `length` bytes, as a number.
    func head(_ length: Int) -> UInt64 { UInt64(rawValue) | UInt64(length) << 32 }
}

/// One packet, as it is offered to the kernel.
struct OutgoingPacket: Sendable {
    var header: PacketHeader
    /// The payload's first eight bytes, in memory order; nil when they are in `payload`.
    var firstWord: UInt64?
    var payload: ArraySlice<UInt8> = []
    /// The end of the payload.
    var tail: ArraySlice<UInt8> = []
    var descriptors: [SharedDescriptor] = []
    /// The token of the peer's request that is settled when this was sent or dropped; zero for none.
    var settles: UInt64 = 0

    var payloadSize: Int { (firstWord == nil ? 0 : ComponentKind.headSize) + payload.count + tail.count }
}

// A plain packet is a whole message of one part: most are, and of bytes. The heads of the packet and of its first record
// suffice to recognise it.

extension PacketPrefix {
    /// The beginning of its head.
    private static let plainHead = PacketHeader(kind: .message, componentCount: 1).words

    /// Whether it is a plain packet, unless its records say otherwise.
    var hasPlainHead: Bool {
        let plain = Self.plainHead
        return head.0 == plain.0 && UInt64(littleEndian: head.1) >> 32 == 1
            && UInt64(littleEndian: head.4) == UInt64(payloadSize)
    }

    /// Whether it is one of bytes.
    var isPlain: Bool {
        hasPlainHead
            && UInt64(littleEndian: firstWord) == ComponentKind.bytes.head(payloadSize - ComponentKind.headSize)
    }

    /// Whether it neither asks for a reply nor is one.
    var isOneWay: Bool { head.2 == 0 && head.3 == 0 }

    var messageID: Int32 { Int32(truncatingIfNeeded: UInt64(littleEndian: head.1)) }

    /// How many bytes the message has.
    var byteCount: Int { payloadSize - ComponentKind.headSize }
}

extension RingConsumer {
    /// Sets `packets` to the next plain packets of bytes that ask for no reply and are none, which stay in the ring: at most
    /// `limit` of them, up to the one with which they have `size` bytes.
    mutating func peekPlainMessages(_ packets: inout [PacketPrefix], atMost limit: Int, size: Int) {
        peekPrefixes(&packets, atMost: limit, size: size) { $0.isOneWay && $0.isPlain }
    }

    /// The next packet, if it is plain. It stays in the ring.
    mutating func peekPlain() -> PacketPrefix? { peek().flatMap { $0.isPlain ? $0 : nil } }
}
