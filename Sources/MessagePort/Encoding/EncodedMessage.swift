// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message's parts as the payload of its packets: a sequence of records, each
//
//   kind (1 byte), zero (3 bytes), length (4 bytes, little-endian), then that many bytes
//
// kinds: 1 bytes; 2 send right, its port's address; 3 descriptor, no bytes, the next one of the message; 4 reply port, an
// address, at most one and before all components; 5 and 6 the same as 2 and 4, with the end of a pipe, the next
// descriptor of the message; 7 the same as 5, with the end of the last record before it that has its address and one; 8
// receive right, no bytes, its port is inside the next descriptor of the message; 9 loan of memory, where it is, before
// all other records; 10 the same, with the next two descriptors, its segment's file and the end of a pipe; 11 memory, no bytes, the next loan; 12 memory,
// its bytes; 13 memory, how many bytes, its sealed file the next descriptor. The components are in the sender's order.

import PortSystem

/// A message as it came from another process.
struct EncodedMessage: Sendable {
    var id: Int32 = 0
    var componentCount = 0
    /// The records; of the last one perhaps only the head.
    var payload: [UInt8] = []
    /// What follows the payload. A large body at the end of a message is received into its final memory.
    var tail: [UInt8] = []
    var descriptors: [SharedDescriptor] = []
    /// The memory that was lent with it.
    var loans: [MessageMemory] = []
    /// When its sender wants a confirmation.
    var confirmation: SendConfirmation?

    /// The bytes of all records.
    var size: Int { payload.count + tail.count }

    /// Decodes the message. A message of only a few bytes keeps the memory in which they arrived. `resolve` converts an
    /// address, and the end that came with it, to a right; to nil when that is no such end. `restore` converts the
    /// descriptor of a receive right to that, `map` that of sealed memory.
    ///
    /// - Returns: the message; nil when the payload is malformed.
    consuming func decoded<Failure: Error>(
        resolve: (PortAddress, SharedDescriptor?) throws(Failure) -> SendRight?,
        restore: (SharedDescriptor) -> MachMessage.Component? = { _ in nil },
        map: (SharedDescriptor, UInt64) -> MessageMemory? = { (try? MessageMemory(sealedIn: $0, count: $1)) ?? nil }
    ) throws(Failure) -> MachMessage? {
        if componentCount == 1, tail.isEmpty, descriptors.isEmpty, let bytes = Self.removeOnlyBytes(&payload) {
            return MachMessage(id: id, bytes: bytes)
        }
        var message = MachMessage(id: id)
        if componentCount > 1 {
            // Each has a record: a false count in the head allocates no more than was sent.
            message.parts = MessageParts(roomFor: min(componentCount, payload.count / ComponentKind.headSize))
        }
        var unclaimed = descriptors[...]
        var unclaimedLoans = loans[...]
        var loanCount = 0
        var ends: [PortAddress: SharedDescriptor] = [:]
        var position = 0
        var rightCount = 0
        while position < payload.count {
            guard let (kind, body) = record(at: &position, tailSize: tail.count),
                kind.isReplyPort || kind.isLoan || message.parts.count < componentCount
            else { return nil }
            if kind.isRight { rightCount += 1 }
            if kind.isLoan { loanCount += 1 }
            if rightCount > MessageLimits.rights { return nil }
            switch kind {
            case .bytes where position > payload.count: message.parts.append(.bytes(tail))
            case .bytes: message.parts.append(.bytes(Array(payload[body])))
            case .descriptor:
                guard body.isEmpty, let descriptor = unclaimed.popFirst() else { return nil }
                message.parts.append(.descriptor(descriptor))
            case .receiveRight:
                guard body.isEmpty, let right = unclaimed.popFirst().flatMap(restore) else { return nil }
                message.parts.append(right)
            // They were borrowed when the message began, and the files mapped: all are in its first packet.
            case .loan, .loanInNewSegment:
                guard loanCount <= loans.count, message.parts.isEmpty, message.replyPort == nil else { return nil }
                if kind == .loan { break }
                if unclaimed.popFirst() == nil || unclaimed.popFirst() == nil { return nil }
            case .lentMemory, .copiedMemory, .sealedMemory:
                let bytes = position > payload.count ? tail : Array(payload[body])
                guard let memory = Self.memory(kind, bytes, &unclaimed, &unclaimedLoans, map) else { return nil }
                message.parts.append(.memory(memory))
            case .right, .countedRight, .sharedRight, .replyPort, .countedReplyPort:
                guard let address = Self.address(payload[body]) else { return nil }
                if kind.isCounted { ends[address] = unclaimed.popFirst() }
                let end = kind.hasEnd ? ends[address] : nil
                guard kind.hasEnd == (end != nil), let right = try resolve(address, end),
                    message.add(right, isReplyPort: kind.isReplyPort)
                else { return nil }
            }
        }
        guard unclaimed.isEmpty, unclaimedLoans.isEmpty, message.parts.count == componentCount, position == size else {
            return nil
        }
        return message
    }

    /// The memory of a record: the next loan, its bytes, or what is in the next descriptor.
    private static func memory(
        _ kind: ComponentKind, _ bytes: [UInt8], _ unclaimed: inout ArraySlice<SharedDescriptor>,
        _ loans: inout ArraySlice<MessageMemory>, _ map: (SharedDescriptor, UInt64) -> MessageMemory?
    ) -> MessageMemory? {
        switch kind {
        case .copiedMemory: return MessageMemory(bytes)
        case .lentMemory: return bytes.isEmpty ? loans.popFirst() : nil
        default:
            guard bytes.count == MessageMemory.sizeOfCount, let file = unclaimed.popFirst() else { return nil }
            return map(file, bytes.littleEndian(at: 0))
        }
    }

    /// The body of a small payload that is one record of bytes; nil for others, which stay as they are.
    static func removeOnlyBytes(_ payload: inout [UInt8]) -> [UInt8]? {
        let size = payload.count - ComponentKind.headSize
        guard size >= 0, payload.count < Tuning.copiedSize,
            payload.littleEndian(at: 0) as UInt64 == ComponentKind.bytes.head(size)
        else { return nil }
        var bytes: [UInt8] = []
        swap(&bytes, &payload)
        bytes.removeFirst(ComponentKind.headSize)
        return bytes
    }

    /// The loans that a message begins with, and whether each came with its segment's file; nil when a record is none, or
    /// they have more bytes together than a message may.
    static func loans(in payload: [UInt8]) -> [(LoanRecord, hasFile: Bool)]? {
        var loans: [(LoanRecord, hasFile: Bool)] = []
        var (position, byteCount) = (0, 0)
        let size = ComponentKind.headSize + LoanRecord.size
        while position < payload.count, let kind = ComponentKind(rawValue: payload[position]), kind.isLoan {
            guard payload.count - position >= size, loans.count < LoanRecord.limit,
                payload.littleEndian(at: position) as UInt64 == kind.head(LoanRecord.size),
                let record = LoanRecord(payload[position + ComponentKind.headSize..<position + size])
            else { return nil }
            byteCount += record.count
            if byteCount > MessageLimits.payload { return nil }
            loans.append((record, kind == .loanInNewSegment))
            position += size
        }
        return loans
    }

    /// Whether the missing bytes, `size` of them, are the body of the last record, of kind bytes: then they are the
    /// tail.
    func isFollowedByBody(of size: Int) -> Bool {
        var position = 0
        while position < payload.count, record(at: &position, tailSize: size) != nil {}
        return position > payload.count
    }

    /// Reads the record at `position` and advances past it: beyond the payload when the tail is its body.
    ///
    /// - Returns: its kind, and the range of its body in the payload.
    private func record(at position: inout Int, tailSize: Int) -> (ComponentKind, Range<Int>)? {
        guard payload.count - position >= ComponentKind.headSize, let kind = ComponentKind(rawValue: payload[position]),
            payload[position + 1] == 0, payload[position + 2] == 0, payload[position + 3] == 0
        else { return nil }
        let length = Int(payload.littleEndian(at: position + 4) as UInt32)
        let start = position + ComponentKind.headSize
        let body = start..<min(start + length, payload.count)
        let isTail = (kind == .bytes || kind == .copiedMemory) && body.isEmpty && length > 0 && length == tailSize
        guard body.count == length || isTail else { return nil }
        position = start + length
        return (kind, body)
    }

    private static func address(_ body: ArraySlice<UInt8>) -> PortAddress? {
        String(validating: body, as: UTF8.self).flatMap { PortAddress(received: $0) }
    }
}

extension MachMessage {
    /// Adds a decoded right; false when a reply port is not the only one, or not before all components.
    fileprivate mutating func add(_ right: SendRight, isReplyPort: Bool) -> Bool {
        guard isReplyPort else {
            parts.append(.right(right))
            return true
        }
        guard replyPort == nil, parts.isEmpty else { return false }
        replyPort = right
        return true
    }
}
