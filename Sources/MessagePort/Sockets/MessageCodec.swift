// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message's parts as the payload of its packets: a sequence of records, each
//
//   kind (1 byte), zero (3 bytes), length (4 bytes, little-endian), then that many bytes
//
// kinds: 1 bytes; 2 send right, its port's address; 3 descriptor, no bytes, the next one of the packet; 4 reply port, an
// address, at most one and before all components. The components are in the sender's order.

import PortSystem

/// A message in the form in which it crosses to another process.
struct EncodedMessage: Sendable {
    var id: Int32
    var componentCount: Int
    /// The records; of the last one perhaps only the head.
    var payload: [UInt8]
    /// What follows the payload. A large body at the end of a message is sent from where it lies in the message, and received
    /// where it will lie.
    var tail: [UInt8] = []
    var descriptors: [SharedDescriptor]
    /// For a message to a port: what it takes up in its sender's account.
    var charge: PeerCharge?

    /// The bytes of all records.
    var size: Int { payload.count + tail.count }
}

private enum RecordKind: UInt8 {
    case bytes = 1
    case right = 2
    case descriptor = 3
    case replyPort = 4
}

extension EncodedMessage {
    /// Encodes a message. Ports of this process that it mentions are given addresses.
    ///
    /// - Parameters:
    ///   - message: the message.
    ///   - limit: the most bytes of the payload.
    /// - Throws: ``PortError`` when the message is over a limit, or holds what cannot cross.
    init(_ message: MachMessage, limit: Int = MessageLimits.payload) throws(PortError) {
        try Self.checkLimits(message, limit)
        id = message.id
        componentCount = message.parts.count
        payload = []
        descriptors = []
        let size = Self.payloadSize(message)
        if size > Self.undividedSize, case .bytes(let bytes)? = message.parts.last, bytes.count >= Self.tailSize {
            tail = bytes
        }
        payload.reserveCapacity(size - tail.count)
        if let replyPort = message.replyPort {
            append(.replyPort, try Self.address(of: replyPort))
        }
        for component in message.parts.dropLast(tail.isEmpty ? 0 : 1) {
            switch component {
            case .bytes(let bytes): append(.bytes, bytes)
            case .right(let right): append(.right, try Self.address(of: right))
            case .descriptor(let descriptor):
                append(.descriptor, [])
                descriptors.append(descriptor)
            case .receiveRight: throw PortError(.notTransferable)
            }
        }
        if !tail.isEmpty { appendHead(.bytes, tail.count) }
        try Self.checkSize(self.size, limit)
    }

    /// What may find room in an empty socket, which takes four packets, goes in as few packets as there can be.
    static let undividedSize = 4 * PacketHeader.payloadLimit
    /// From this size on, and in a larger message, bytes are not copied into the payload.
    private static let tailSize = 16 << 10

    /// The address of a right's port. One of this process that has ended has none any more: its right travels as a dead name.
    private static func address(of right: SendRight) throws(PortError) -> [UInt8] {
        do throws(PortError) {
            return Array(try right.destination.address().path.utf8)
        } catch {
            guard error.code == .invalidPort else { throw error }
            return Array(PortAddress.nowhere.path.utf8)
        }
    }

    private mutating func append(_ kind: RecordKind, _ bytes: [UInt8]) {
        appendHead(kind, bytes.count)
        payload += bytes
    }

    private mutating func appendHead(_ kind: RecordKind, _ length: Int) {
        payload += [kind.rawValue, 0, 0, 0]
        payload.append(littleEndian: UInt32(length))
    }

    private static func payloadSize(_ message: MachMessage) -> Int {
        message.parts.reduce(into: 0) { size, component in
            size += 8
            if case .bytes(let bytes) = component { size += bytes.count }
        }
    }

    private static func checkSize(_ size: Int, _ limit: Int) throws(PortError) {
        if size > limit { throw PortError(.messageTooLarge, subject: .size(size, limit: limit)) }
    }

    private static func checkLimits(_ message: MachMessage, _ limit: Int) throws(PortError) {
        try checkSize(payloadSize(message), limit)
        if message.parts.count > MessageLimits.components {
            throw PortError(
                .messageTooLarge, subject: .size(message.parts.count, limit: MessageLimits.components, of: .components))
        }
        let descriptorCount = message.parts.count { if case .descriptor = $0 { true } else { false } }
        let rightCount = message.parts.count { if case .right = $0 { true } else { false } }
        let ports = rightCount + (message.replyPort == nil ? 0 : 1)
        if ports > MessageLimits.rights {
            throw PortError(.messageTooLarge, subject: .size(ports, limit: MessageLimits.rights, of: .rights))
        }
        if descriptorCount > MessageLimits.descriptors {
            throw PortError(
                .tooManyDescriptors,
                subject: .size(descriptorCount, limit: MessageLimits.descriptors, of: .descriptors))
        }
    }
}

extension EncodedMessage {
    /// Decodes the message. Of one that has only bytes they stay where they lie.
    ///
    /// - Parameter resolve: turns an address into a right.
    /// - Returns: the message; nil when the payload is not of the format.
    /// - Throws: what `resolve` throws.
    consuming func decoded<Failure: Error>(
        resolve: (PortAddress) throws(Failure) -> SendRight
    ) throws(Failure) -> MachMessage? {
        if componentCount == 1, tail.isEmpty, descriptors.isEmpty, let bytes = takeOnlyBytes() {
            return MachMessage(id: id, bytes: bytes)
        }
        var message = MachMessage(id: id)
        var unclaimed = descriptors[...]
        var position = 0
        var rightCount = 0
        while position < payload.count {
            guard let (kind, body) = record(at: &position, tailSize: tail.count),
                kind == .replyPort || message.parts.count < componentCount
            else { return nil }
            if kind == .right || kind == .replyPort { rightCount += 1 }
            if rightCount > MessageLimits.rights { return nil }
            switch kind {
            case .bytes where position > payload.count: message.parts.append(.bytes(tail))
            case .bytes: message.parts.append(.bytes(Array(payload[body])))
            case .right:
                guard let address = Self.address(payload[body]) else { return nil }
                message.parts.append(.right(try resolve(address)))
            case .descriptor:
                guard body.isEmpty, let descriptor = unclaimed.popFirst() else { return nil }
                message.parts.append(.descriptor(descriptor))
            case .replyPort:
                guard message.replyPort == nil, message.parts.isEmpty, let address = Self.address(payload[body])
                else {
                    return nil
                }
                message.replyPort = try resolve(address)
            }
        }
        guard unclaimed.isEmpty, message.parts.count == componentCount, position == size else { return nil }
        return message
    }

    /// The body of a payload that is one record of bytes; nil of others, which stay as they are.
    private mutating func takeOnlyBytes() -> [UInt8]? {
        var position = 0
        guard let (kind, body) = record(at: &position, tailSize: 0), kind == .bytes, body.endIndex == payload.count
        else { return nil }
        var bytes: [UInt8] = []
        swap(&bytes, &payload)
        bytes.removeFirst(body.startIndex)
        return bytes
    }

    /// Whether what is missing, so many bytes, is the body of the last record, of kind bytes: then it is the tail.
    func isFollowedByBody(of size: Int) -> Bool {
        var position = 0
        while position < payload.count, record(at: &position, tailSize: size) != nil {}
        return position > payload.count
    }

    /// Reads the record at `position` and moves behind it: beyond the payload when the tail is its body.
    ///
    /// - Returns: what it is, and where its body lies in the payload.
    private func record(at position: inout Int, tailSize: Int) -> (RecordKind, Range<Int>)? {
        guard payload.count - position >= 8, let kind = RecordKind(rawValue: payload[position]),
            payload[position + 1] == 0, payload[position + 2] == 0, payload[position + 3] == 0
        else { return nil }
        let length = Int(payload.littleEndian(at: position + 4) as UInt32)
        let body = position + 8..<min(position + 8 + length, payload.count)
        let isTail = kind == .bytes && body.isEmpty && length > 0 && length == tailSize
        guard body.count == length || isTail else { return nil }
        position += 8 + length
        return (kind, body)
    }

    private static func address(_ body: ArraySlice<UInt8>) -> PortAddress? {
        String(validating: body, as: UTF8.self).flatMap { PortAddress(received: $0) }
    }
}
