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
    let firstWord: UInt64?
    /// What is between the first head and the tail.
    let records: [UInt8]
    /// The body of the last record, if it is of bytes: sent from the message's memory.
    let tail: [UInt8]
    let descriptors: [SharedDescriptor]

    private var firstWordSize: Int { firstWord == nil ? 0 : ComponentKind.headSize }
    /// Where the tail begins in the payload.
    private var tailStart: Int { firstWordSize + records.count }
    /// The size of all records.
    var size: Int { tailStart + tail.count }

    /// Encodes a message whose payload has at most `limit` bytes. Ports of this process to which it has rights get
    /// addresses. The ports of receive rights are inside descriptors, of which there is one for each: otherwise it throws
    /// `notTransferable`.
    ///
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot go to another process.
    init(
        _ message: borrowing MachMessage, limit: Int = MessageLimits.payload, moving moved: [SharedDescriptor] = []
    ) throws(PortError) {
        var moved = moved[...]
        let replyPort = message.replyPort
        let counts = PartCounts(message.parts, hasReplyPort: replyPort != nil)
        try counts.check(limit)
        let room = counts.size - counts.tail - (replyPort == nil ? ComponentKind.headSize : 0)
        var records = OutgoingRecords(room: room)
        if let replyPort { try records.append(replyPort, .replyPort, with: .countedReplyPort) }
        try message.parts.visit { (part, isLast) throws(PortError) in
            switch part {
            case .bytes(let bytes) where isLast: records.end(with: bytes)
            case .bytes(let bytes): records.append(.bytes, bytes)
            case .right(let right): try records.append(right, .right, with: .countedRight)
            case .descriptor(let descriptor): records.append(.descriptor, descriptor)
            case .receiveRight:
                guard let descriptor = moved.popFirst() else { throw PortError(.notTransferable) }
                records.append(.receiveRight, descriptor)
            }
        }
        try PartCounts.check(size: records.size, limit)
        if records.hasEnds { try PartCounts.check(descriptors: records.descriptors.count) }
        self.init(id: message.id, counts.components, records)
    }

    private init(id: Int32, _ componentCount: Int, _ records: consuming OutgoingRecords) {
        (self.id, self.componentCount, firstWord) = (id, componentCount, records.firstWord)
        (self.records, tail, descriptors) = (records.bytes, records.tail, records.descriptors)
    }

    /// The same for a message of one part, bytes, with no reply port: most are. Nil for another one.
    init?(plain message: borrowing MachMessage, limit: Int = MessageLimits.payload) throws(PortError) {
        guard message.replyPort == nil, let bytes = message.parts.onlyBytes else { return nil }
        try PartCounts.check(size: ComponentKind.headSize + bytes.count, limit)
        self.init(id: message.id, bytes: bytes)
    }

    /// Checks what can be checked without encoding it.
    ///
    /// - Returns: what it takes in memory, without the addresses of its rights.
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot go to another process.
    static func check(_ message: MachMessage) throws(PortError) -> ResourceUsage {
        let counts = PartCounts(message.parts, hasReplyPort: message.replyPort != nil)
        try counts.check(MessageLimits.payload)
        if counts.hasReceiveRights { throw PortError(.notTransferable) }
        let endCount = message.endCount
        if endCount > 0 { try PartCounts.check(descriptors: counts.descriptors + endCount) }
        return ResourceUsage(
            bytes: counts.size + ResourceUsage.message + counts.rights * ResourceUsage.right,
            descriptors: counts.descriptors + endCount)
    }

    /// A message of one part, bytes, which are within the limit.
    init(id: Int32, bytes: [UInt8]) {
        self.id = id
        componentCount = 1
        firstWord = ComponentKind.bytes.head(bytes.count).littleEndian
        tail = bytes
        (records, descriptors) = ([], [])
    }

    /// All records, in memory of their own.
    var payload: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        if let firstWord { bytes.append(littleEndian: UInt64(littleEndian: firstWord)) }
        bytes += records
        bytes += tail
        return bytes
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

/// The records of a message while they are encoded.
private struct OutgoingRecords {
    private(set) var firstWord: UInt64?
    private(set) var bytes: [UInt8] = []
    private(set) var tail: [UInt8] = []
    private(set) var descriptors: [SharedDescriptor] = []
    /// The end of a pipe with which the last right to each port travels: the next one shares it, if it has the same.
    private var ends: [PortAddress: SharedDescriptor] = [:]

    init(room: Int) { if room > 0 { bytes.reserveCapacity(room) } }

    var hasEnds: Bool { !ends.isEmpty }
    var size: Int { (firstWord == nil ? 0 : ComponentKind.headSize) + bytes.count + tail.count }

    mutating func end(with bytes: [UInt8]) {
        appendHead(.bytes, bytes.count)
        tail = bytes
    }

    mutating func append(_ kind: ComponentKind, _ descriptor: SharedDescriptor) {
        appendHead(kind, 0)
        descriptors.append(descriptor)
    }

    /// Appends a right: with the end of a pipe, if its port counts rights that way. A port of this process that has
    /// ended has no address: its right travels as a dead name.
    mutating func append(
        _ right: SendRight, _ kind: ComponentKind, with counting: ComponentKind
    ) throws(PortError) {
        do throws(PortError) {
            // Of a right to a name the present owner's, for both.
            let right = try right.destination.rightToSend() ?? right
            let address = try right.destination.address()
            let path = Array(address.path.utf8)
            guard let end = try right.export() else { return append(kind, path) }
            if ends[address] === end, kind == .right { return append(.sharedRight, path) }
            append(counting, path)
            ends[address] = end
            descriptors.append(end)
        } catch {
            guard error.code == .invalidPort else { throw error }
            append(kind, Array(PortAddress.nowhere.path.utf8))
        }
    }

    mutating func append(_ kind: ComponentKind, _ bytes: [UInt8]) {
        appendHead(kind, bytes.count)
        self.bytes += bytes
    }

    private mutating func appendHead(_ kind: ComponentKind, _ length: Int) {
        let head = kind.head(length)
        if firstWord == nil { firstWord = head.littleEndian } else { bytes.append(littleEndian: head) }
    }
}

/// The counts of what is limited.
private struct PartCounts {
    var components = 0
    private(set) var descriptors = 0
    /// The reply port is one of them.
    private(set) var rights: Int
    private(set) var hasReceiveRights = false
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
            case .receiveRight:
                descriptors += 1
                hasReceiveRights = true
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
        try Self.check(descriptors: descriptors)
    }

    static func check(descriptors: Int) throws(PortError) {
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
    /// When it is confirmed; nil for a message that asks for a reply, or for nothing.
    let confirmation: SendConfirmation?
    private var sentCount = 0
    private var sentDescriptorCount = 0
    /// Whether the first packet was sent.
    private(set) var isBegun = false

    /// A message that asks for a reply, or for a confirmation, or for neither.
    init(
        _ message: consuming OutgoingMessage, asks: UInt64, answers: UInt64, confirming: SendConfirmation? = nil
    ) {
        self.message = message
        self.asks = asks
        self.answers = answers
        confirmation = asks == 0 || answers != 0 ? nil : confirming
    }

    var isDone: Bool { isBegun && sentCount == message.size }

    /// Whether it is for the port, and answers nothing.
    var isForPort: Bool { answers == 0 }

    /// Whether it is the one that waits for a grant, or is sent with it.
    var isFirstInLine = false

    /// Whether its sender holds the line of large messages.
    var isInTurn = false

    /// Whether others may be sent between its pieces.
    var mayBeDivided: Bool { isInTurn && isForPort }

    /// Whether it takes several packets of at most this many bytes.
    func isLarge(_ limit: Int) -> Bool {
        message.size > limit || message.isDivided || message.descriptors.count > packetDescriptorLimit
    }

    /// Whether it may be sent whole between the pieces of another.
    func fits(_ allowance: PieceAllowance) -> Bool {
        isForPort && message.descriptors.isEmpty && costBetweenPieces <= allowance.bytes
    }

    var costBetweenPieces: Int { PieceAllowance.cost(message.size, components: message.componentCount) }

    private var header: PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(message.descriptors.count), messageID: message.id,
            componentCount: UInt32(message.componentCount), asks: asks, answers: answers,
            totalLength: UInt64(message.size), confirmation: confirmation)
    }

    var restSize: Int { message.size - sentCount }

    func next(atMost limit: Int = PacketHeader.payloadLimit) -> OutgoingPacket {
        // Most are one packet: this is the same, with less to compute.
        if !isBegun, message.size <= limit, message.descriptors.isEmpty, !message.isDivided {
            return OutgoingPacket(
                header: header, firstWord: message.firstWord, payload: message.records[...], tail: message.tail[...])
        }
        let unsent = message.descriptors.dropFirst(sentDescriptorCount)
        let descriptors =
            unsent.count == message.descriptors.count && unsent.count <= packetDescriptorLimit
            ? message.descriptors : Array(unsent.prefix(packetDescriptorLimit))
        let header =
            isBegun
            ? PacketHeader(kind: .continuation, descriptorCount: UInt16(descriptors.count)) : header
        // The other descriptors need packets, too, each with a part of the payload, which has eight bytes for each one.
        let packetsAfterwards = (unsent.count - descriptors.count + packetDescriptorLimit - 1) / packetDescriptorLimit
        return message.packet(
            header, at: sentCount, atMost: min(limit, max(restSize - packetsAfterwards, 1)), descriptors)
    }

    /// The kernel has accepted the packet that is the next one.
    mutating func advance(by packet: OutgoingPacket) {
        sentCount += packet.payloadSize
        sentDescriptorCount += packet.descriptors.count
        isBegun = true
    }

    /// Removes the packets that are not sent yet, in order, for the backlog. The last of them settles the token.
    mutating func rest(settling token: UInt64) -> [OutgoingPacket] {
        var packets: [OutgoingPacket] = []
        while !isDone {
            var packet = next()
            advance(by: packet)
            if isDone { packet.settles = token }
            packets.append(packet)
        }
        return packets
    }
}
