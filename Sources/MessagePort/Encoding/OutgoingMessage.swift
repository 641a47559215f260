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
    /// What is lent with it.
    let loans: [LentMemory]

    private var firstWordSize: Int { firstWord == nil ? 0 : ComponentKind.headSize }
    /// Where the tail begins in the payload.
    private var tailStart: Int { firstWordSize + records.count }
    /// The size of all records.
    var size: Int { tailStart + tail.count }

    /// Encodes a message whose payload has at most `limit` bytes. Ports of this process to which it has rights get
    /// addresses. The ports of receive rights are inside descriptors, of which there is one for each: otherwise it throws
    /// `notTransferable`. Memory of pools is lent by the lender; what is not, is copied.
    ///
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot go to another process. Then nothing
    ///   is lent.
    init(
        _ message: borrowing MachMessage, limit: Int = MessageLimits.payload, moving moved: [SharedDescriptor] = [],
        lending lender: MemoryLender? = nil
    ) throws(PortError) {
        let memory = OutgoingMemory(message.parts, lending: lender)
        do throws(PortError) {
            try self.init(message, limit, moved[...], memory)
        } catch {
            lender?.withdraw(memory.loans)
            throw error
        }
    }

    private init(
        _ message: borrowing MachMessage, _ limit: Int, _ moved: ArraySlice<SharedDescriptor>, _ memory: OutgoingMemory
    ) throws(PortError) {
        var (moved, memory) = (moved, memory)
        let replyPort = message.replyPort
        let counts = PartCounts(message.parts, hasReplyPort: replyPort != nil, memory)
        try counts.check(limit)
        let room = counts.size - counts.tail - (replyPort == nil && memory.loans.isEmpty ? ComponentKind.headSize : 0)
        var records = OutgoingRecords(room: room)
        for loan in memory.loans { records.append(loan) }
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
            case .memory(let part): records.append(part, isLent: memory.isNextLent(part), isLast: isLast)
            }
        }
        try PartCounts.check(size: records.size, limit)
        if records.hasEnds { try PartCounts.check(descriptors: records.descriptors.count) }
        self.init(id: message.id, counts.components, records, memory.loans)
    }

    private init(id: Int32, _ componentCount: Int, _ records: consuming OutgoingRecords, _ loans: [LentMemory]) {
        (self.id, self.componentCount, firstWord) = (id, componentCount, records.firstWord)
        (self.records, tail, descriptors) = (records.bytes, records.tail, records.descriptors)
        self.loans = loans
    }

    /// The same for a message of one part, bytes, with no reply port: most are. Nil for another one.
    init?(plain message: borrowing MachMessage, limit: Int = MessageLimits.payload) throws(PortError) {
        guard message.replyPort == nil, let bytes = message.parts.onlyBytes else { return nil }
        try PartCounts.check(size: ComponentKind.headSize + bytes.count, limit)
        self.init(id: message.id, ComponentKind.bytes.head(bytes.count).littleEndian, bytes)
    }

    /// Checks what can be checked without encoding it.
    ///
    /// - Returns: what it takes in memory, without the addresses of its rights.
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot go to another process.
    static func check(_ message: MachMessage) throws(PortError) -> ResourceUsage {
        let counts = PartCounts(
            message.parts, hasReplyPort: message.replyPort != nil, OutgoingMemory(lending: message.parts))
        try counts.check(MessageLimits.payload)
        if counts.hasReceiveRights { throw PortError(.notTransferable) }
        let endCount = message.endCount
        if endCount > 0 { try PartCounts.check(descriptors: counts.descriptors + endCount) }
        return ResourceUsage(
            bytes: counts.size + ResourceUsage.message + counts.rights * ResourceUsage.right,
            descriptors: counts.descriptors + endCount)
    }

    /// A plain message, which is within the limit: its first head, in memory order, and what follows. The caller withdraws
    /// what is lent with it.
    init(id: Int32, _ head: UInt64, _ body: [UInt8]) {
        self.id = id
        componentCount = 1
        firstWord = head
        tail = body
        (records, descriptors, loans) = ([], [], [])
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

/// What becomes of the memory in a message: what is lent, in the order of its components.
private struct OutgoingMemory {
    private(set) var loans: [LentMemory] = []
    /// Whether the memory of each pool is lent, in order.
    private var isLent: ArraySlice<Bool> = []

    /// As if all that can be lent were.
    init(lending parts: borrowing MessageParts) {
        parts.visit { (part, _) in
            if case .memory(let memory) = part, case .slot = memory.storage { isLent.append(true) }
        }
    }

    init(_ parts: borrowing MessageParts, lending lender: MemoryLender?) {
        guard let lender, parts.hasMemory else { return }
        var (segments, byteCount): (Set<UInt64>, Int) = ([], 0)
        parts.visit { (part, _) in
            guard case .memory(let memory) = part, case .slot(let slot) = memory.storage else { return }
            let mayLend = loans.count < LoanRecord.limit && memory.count <= MessageLimits.payload - byteCount
            let isFirst = !segments.contains(slot.segment.number)
            let lent = mayLend ? lender.lend(slot, count: memory.count, mayBringFile: isFirst) : nil
            if let lent {
                loans.append(lent)
                segments.insert(slot.segment.number)
                byteCount += memory.count
            }
            isLent.append(lent != nil)
        }
    }

    /// Whether memory is lent; asked once for each, in order.
    mutating func isNextLent(_ memory: MessageMemory) -> Bool {
        guard case .slot = memory.storage else { return false }
        return isLent.popFirst() ?? false
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

    mutating func end(with bytes: [UInt8], as kind: ComponentKind = .bytes) {
        appendHead(kind, bytes.count)
        tail = bytes
    }

    mutating func append(_ loan: LentMemory) {
        append(loan.descriptors.isEmpty ? .loan : .loanInNewSegment, loan.record.bytes)
        descriptors += loan.descriptors
    }

    mutating func append(_ memory: MessageMemory, isLent: Bool, isLast: Bool) {
        if isLent { return appendHead(.lentMemory, 0) }
        if case .sealed(_, let file) = memory.storage {
            var count: [UInt8] = []
            count.append(littleEndian: UInt64(memory.count))
            append(.sealedMemory, count)
            return descriptors.append(file)
        }
        let bytes = memory.copy()
        if isLast { end(with: bytes, as: .copiedMemory) } else { append(.copiedMemory, bytes) }
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

    init(_ parts: borrowing MessageParts, hasReplyPort: Bool, _ memory: consuming OutgoingMemory) {
        rights = hasReplyPort ? 1 : 0
        size = memory.loans.count * (ComponentKind.headSize + LoanRecord.size)
        descriptors = memory.loans.reduce(0) { $0 + $1.descriptors.count }
        var memory = memory
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
            case .memory(let part):
                if memory.isNextLent(part) { break }
                if case .sealed = part.storage {
                    size += MessageMemory.sizeOfCount
                    descriptors += 1
                } else {
                    size += part.count
                    if isLast { tail = part.count }
                }
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
