// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// A message's parts as the payload of its packets: the records that EncodedMessage.swift describes. Nothing is copied
// without need: a message of one part, bytes, allocates nothing.
//
//   firstWord: the first record's head │ records: the others, and the first one's body
//     │ tail: the last one's body, if it is bytes

/// A message encoded for another process.
struct OutgoingMessage: Sendable {
    let id: Int32
    let componentCount: Int
    /// The head of the first record, in memory order; nil when there is no record.
    private(set) var firstWord: UInt64?
    /// What is between the first head and the tail.
    private(set) var records: [UInt8] = []
    /// The body of the last record, if it is of bytes: sent from the message's memory.
    private(set) var tail: [UInt8] = []
    private(set) var descriptors: [SharedDescriptor] = []

    private var firstWordSize: Int { firstWord == nil ? 0 : ComponentKind.headSize }
    /// Where the tail begins in the payload.
    private var tailStart: Int { firstWordSize + records.count }
    /// The size of all records.
    var size: Int { tailStart + tail.count }

    /// Encodes a message whose payload has at most `limit` bytes. Ports of this process to which it has rights get
    /// addresses.
    ///
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot go to another process.
    init(_ message: borrowing MachMessage, limit: Int = MessageLimits.payload) throws(PortError) {
        let replyPort = message.replyPort
        let counts = PartCounts(message.parts, hasReplyPort: replyPort != nil)
        try counts.check(limit)
        id = message.id
        componentCount = counts.components
        let room = counts.size - counts.tail - (replyPort == nil ? ComponentKind.headSize : 0)
        if room > 0 { records.reserveCapacity(room) }
        if let replyPort { append(.replyPort, try Self.address(of: replyPort)) }
        try message.parts.visit { (part, isLast) throws(PortError) in
            switch part {
            case .bytes(let bytes) where isLast:
                appendHead(.bytes, bytes.count)
                tail = bytes
            case .bytes(let bytes): append(.bytes, bytes)
            case .right(let right): append(.right, try Self.address(of: right))
            case .descriptor(let descriptor):
                appendHead(.descriptor, 0)
                descriptors.append(descriptor)
            case .receiveRight: throw PortError(.notTransferable)
            }
        }
        try PartCounts.check(size: size, limit)
    }

    /// A message of one part, bytes, which are within the limit.
    init(id: Int32, bytes: [UInt8]) {
        self.id = id
        componentCount = 1
        firstWord = ComponentKind.bytes.head(bytes.count).littleEndian
        tail = bytes
    }

    /// The address of a right's port. A port of this process that has ended has none: its right travels as a dead name.
    private static func address(of right: SendRight) throws(PortError) -> [UInt8] {
        do throws(PortError) {
            return Array(try right.destination.address().path.utf8)
        } catch {
            guard error.code == .invalidPort else { throw error }
            return Array(PortAddress.nowhere.path.utf8)
        }
    }

    private mutating func append(_ kind: ComponentKind, _ bytes: [UInt8]) {
        appendHead(kind, bytes.count)
        records += bytes
    }

    private mutating func appendHead(_ kind: ComponentKind, _ length: Int) {
        let head = kind.head(length)
        if firstWord == nil { firstWord = head.littleEndian } else { records.append(littleEndian: head) }
    }

    /// Whether the tail has packets of its own.
    var isDivided: Bool {
        tail.count >= Tuning.dividedTailSize && size > Tuning.undividedPackets * PacketHeader.payloadLimit
    }

    /// A piece of the payload as a packet. It begins at the beginning, or where the previous one ended. The limit is at
    /// least a head's bytes.
    func packet(
        _ header: PacketHeader, at position: Int, atMost limit: Int, _ descriptors: [SharedDescriptor] = []
    ) -> OutgoingPacket {
        let (tailStart, firstWordSize) = (tailStart, firstWordSize)
        var end = min(position + limit, tailStart + tail.count)
        if position < tailStart, isDivided { end = min(end, tailStart) }
        let inRecords = max(position, firstWordSize)..<max(min(end, tailStart), position, firstWordSize)
        let inTail = max(position, tailStart)..<max(end, tailStart)
        return OutgoingPacket(
            header: header, firstWord: position == 0 ? firstWord : nil,
            payload: inRecords.isEmpty
                ? [] : records[inRecords.lowerBound - firstWordSize..<inRecords.upperBound - firstWordSize],
            tail: inTail.isEmpty ? [] : tail[inTail.lowerBound - tailStart..<inTail.upperBound - tailStart],
            descriptors: descriptors)
    }
}

/// The counts of what is limited.
private struct PartCounts {
    var components = 0
    private var descriptors = 0
    /// The reply port is one of them.
    private var rights: Int
    /// The size of all components' records, without addresses.
    var size = 0
    /// The size of the last component, if it is bytes.
    var tail = 0

    init(_ parts: borrowing MessageParts, hasReplyPort: Bool) {
        rights = hasReplyPort ? 1 : 0
        parts.visit { (part, isLast) in
            components += 1
            size += ComponentKind.headSize
            switch part {
            case .bytes(let bytes):
                size += bytes.count
                if isLast { tail = bytes.count }
            case .right: rights += 1
            case .descriptor: descriptors += 1
            case .receiveRight: break
            }
        }
    }

    func check(_ limit: Int) throws(PortError) {
        try Self.check(size: size, limit)
        if components > MessageLimits.components {
            throw PortError(
                .messageTooLarge, subject: .size(components, limit: MessageLimits.components, of: .components))
        }
        if rights > MessageLimits.rights {
            throw PortError(.messageTooLarge, subject: .size(rights, limit: MessageLimits.rights, of: .rights))
        }
        if descriptors > MessageLimits.descriptors {
            throw PortError(
                .tooManyDescriptors,
                subject: .size(descriptors, limit: MessageLimits.descriptors, of: .descriptors))
        }
    }

    static func check(size: Int, _ limit: Int) throws(PortError) {
        if size > limit { throw PortError(.messageTooLarge, subject: .size(size, limit: limit)) }
    }
}

/// A message that is being sent: how much of it the kernel has accepted.
struct Transmission: ~Copyable, Sendable {
    private let message: OutgoingMessage
    /// The token that asks for a reply; zero when none is wanted.
    let asks: UInt64
    /// The token of the message that it answers; zero for a message to the port.
    private let answers: UInt64
    private var sentCount = 0
    /// Whether the first packet was sent.
    private(set) var isBegun = false

    init(_ message: consuming OutgoingMessage, asks: UInt64, answers: UInt64) {
        self.message = message
        self.asks = asks
        self.answers = answers
    }

    var isDone: Bool { isBegun && sentCount == message.size }

    private var header: PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(message.descriptors.count), messageID: message.id,
            componentCount: UInt32(message.componentCount), asks: asks, answers: answers,
            totalLength: UInt64(message.size))
    }

    var restSize: Int { message.size - sentCount }

    func next(atMost limit: Int = PacketHeader.payloadLimit) -> OutgoingPacket {
        isBegun
            ? message.packet(PacketHeader(kind: .continuation), at: sentCount, atMost: limit)
            : message.packet(header, at: 0, atMost: limit, message.descriptors)
    }

    /// The kernel has accepted a packet with this many bytes of the payload.
    mutating func advance(by size: Int) {
        sentCount += size
        isBegun = true
    }

    /// Removes the packets that are not sent yet, in order, for the backlog. The last of them settles the token.
    mutating func rest(settling token: UInt64) -> [OutgoingPacket] {
        var packets: [OutgoingPacket] = []
        while !isDone {
            var packet = next()
            advance(by: packet.payloadSize)
            if isDone { packet.settles = token }
            packets.append(packet)
        }
        return packets
    }
}
