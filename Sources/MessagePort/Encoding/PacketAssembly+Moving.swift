// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension PacketAssembly {
    /// What has come of a message whose port moves to another process.
    struct Snapshot: Equatable, Sendable {
        /// The head of its first packet.
        var head: [UInt8]
        /// What it will be when it is whole.
        var outcome: PartialMessage.Outcome
        var count: Int
        var missingDescriptors: Int
        var isTail: Bool
        var allowance: PieceAllowance
        var payload: [UInt8]
        var tail: [UInt8]
        var descriptorCount: Int
    }

    /// What has come of a message, and its descriptors; nil when none is begun.
    var remainder: (Snapshot, [SharedDescriptor])? {
        if !isBegun { return nil }
        let message = partial.value.message
        let remainder = Snapshot(
            head: partial.value.header.encoded, outcome: partial.value.outcome, count: partial.value.count,
            missingDescriptors: partial.value.missingDescriptors, isTail: partial.value.isTail,
            allowance: partial.value.allowance,
            payload: message.payload, tail: message.tail, descriptorCount: message.descriptors.count)
        return (remainder, message.descriptors)
    }

    /// Continues a message that another process has begun to receive.
    ///
    /// - Returns: false when there is no such message.
    mutating func resume(_ remainder: Snapshot, _ descriptors: [SharedDescriptor]) -> Bool {
        guard let header = PacketHeader(remainder.head), header.kind == .message,
            header.totalLength <= UInt64(MessageLimits.payload),
            header.componentCount <= UInt32(MessageLimits.components),
            Int(header.descriptorCount) <= MessageLimits.descriptors,
            (0..<Int(header.totalLength)).contains(remainder.count),
            (0...Int(header.descriptorCount)).contains(remainder.missingDescriptors),
            descriptors.count == remainder.descriptorCount,
            (0...(Int(header.totalLength) - remainder.count)).contains(remainder.allowance.bytes)
        else { return false }
        let message = EncodedMessage(
            id: header.messageID, componentCount: Int(header.componentCount), payload: remainder.payload,
            tail: remainder.tail, descriptors: descriptors, confirmation: header.confirmation)
        // What was lent was lent to the other process.
        let isLost = remainder.outcome == .message && ComponentKind.beginsWithLoan(remainder.payload)
        let piece = PartialMessage(
            header: header, message: message, outcome: isLost ? .withoutDescriptors : remainder.outcome,
            count: remainder.count,
            missingDescriptors: remainder.missingDescriptors, isTail: remainder.isTail, allowance: remainder.allowance)
        if message.size != (piece.isStored ? piece.count : 0) { return false }
        let present = Int(header.descriptorCount) - piece.missingDescriptors
        if descriptors.count != (remainder.outcome == .message ? present : 0) { return false }
        partial = ColdStorage(piece)
        return true
    }
}

extension PacketAssembly.Snapshot: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        head = Array(try reader.readRaw(count: PacketHeader.size))
        guard let outcome = PacketAssembly.PartialMessage.Outcome(rawValue: try reader.read()) else {
            throw reader.malformed("no partial message")
        }
        self.outcome = outcome
        count = try reader.read()
        missingDescriptors = try reader.read()
        isTail = try reader.read()
        allowance = PieceAllowance(bytes: try reader.read())
        payload = try reader.read()
        tail = try reader.read()
        descriptorCount = try reader.read()
        if !(0...MessageLimits.descriptors).contains(descriptorCount) { throw reader.malformed("no partial message") }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(raw: head)
        writer.write(outcome.rawValue)
        writer.write(count)
        writer.write(missingDescriptors)
        writer.write(isTail)
        writer.write(allowance.bytes)
        writer.write(payload)
        writer.write(tail)
        writer.write(descriptorCount)
    }
}
