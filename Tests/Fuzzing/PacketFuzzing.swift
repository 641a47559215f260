// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem

/// What must hold for every sequence of packets that a peer may send.
///
/// An input represents the packets of one connection: each begins with two bytes that give its length, in little-endian
/// order, and one that says how many descriptors come with it, 255 for descriptors that were lost.
public enum PacketFuzzing {
    /// Traps when the packets bring the decoder to something that Docs/WireFormat.md excludes.
    public static func check(_ input: [UInt8]) {
        var assembly = PacketAssembly()
        var received = 0
        for packet in packets(input) {
            guard let header = PacketHeader(packet.bytes) else { return }
            precondition(header.encoded.elementsEqual(packet.bytes.prefix(PacketHeader.size)), "a head has one form")
            let payload = Array(packet.bytes.dropFirst(PacketHeader.size))
            received += payload.count
            guard let event = take(header, payload, packet.descriptors, by: &assembly) else { return }
            switch event {
            case .violation, .refused: return
            case .message(let message, _, _):
                precondition(message.size <= received, "bytes that no peer sent")
                precondition(message.descriptors.count <= MessageLimits.descriptors, "descriptors beyond their limit")
                checkDecoding(message)
                received = 0
            case .replyFailed(_, _, let text):
                precondition(text.utf8.count <= 3 * PortError.remoteTextLimit, "a text beyond its limit")
            case .statistics(let statistics, let token):
                precondition(token == header.answers, "an answer to another question")
                let isBeyondRange = payload.prefix(80).enumerated().contains { $0 % 8 == 7 && $1 > 127 }
                precondition(
                    isBeyondRange || statistics.payload.elementsEqual(payload.prefix(80)), "numbers that no peer sent")
            case .probed(let probe, let token):
                let again = PacketHeader(probe, about: token)
                precondition(again.probe == probe && token == header.asks && token != 0, "a probe of another wait")
            case .probeAnswered(let probe, let token, let hasReturned):
                let again = PacketHeader(answering: probe, about: token, hasReturned: hasReturned)
                precondition(again.probe == probe && token == header.answers, "an answer about another request")
                precondition(again.componentCount == header.componentCount, "an answer that no peer gave")
            case .returned(let number, let lender, let isSegmentUnknown):
                let again = PacketHeader.returned(number, to: lender, isSegmentUnknown: isSegmentUnknown)
                precondition(again.asks == header.asks && number != 0, "another loan is returned")
                precondition(again.totalLength == header.totalLength, "a loan is returned to another lender")
                precondition(again.componentCount == header.componentCount, "a segment that a peer has or has not")
            case .segmentEnded(let number, let lender):
                let again = PacketHeader.segmentEnded(number, of: lender)
                precondition(again.asks == header.asks && number != 0, "another segment")
                precondition(again.totalLength == header.totalLength, "a segment of another lender")
            case .returnPage(let page, let lender):
                precondition(header == .returnPage(to: lender) && payload.isEmpty, "a page with more than it has")
                precondition(page == nil || packet.descriptors?.count == 1, "a page of returns that no peer sent")
            case .shown(let message):
                precondition(message.bytes.count <= TappedMessage.byteLimit, "bytes beyond their limit")
            default: break
            }
            if !assembly.isBegun { received = 0 }
        }
    }

    /// Reads a packet as a connection does: while a message is begun, what follows the head is written after it, and
    /// undone when it is no piece.
    ///
    /// - Returns: nil when it has no room there, which ends the connection.
    private static func take(
        _ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?,
        by assembly: inout PacketAssembly
    ) -> PacketAssembly.Event? {
        guard assembly.hasRoomForPiece else { return accept(header, payload, descriptors, by: &assembly) }
        var hasRoom = false
        let count = try? assembly.land { room in
            hasRoom = payload.count <= room.freeCapacity
            if hasRoom { for byte in payload { room.append(byte) } }
        }
        guard hasRoom, count == payload.count else { return nil }
        if header.kind == .continuation { return assembly.didLand(payload.count, header, descriptors: descriptors) }
        let bytes = assembly.removeWritten(payload.count)
        precondition(bytes == payload, "bytes that no peer sent")
        return accept(header, bytes, descriptors, by: &assembly)
    }

    /// Borrows the memory that comes with a message, as a connection does, and accepts the packet.
    ///
    /// - Returns: nil when a loan breaks the format.
    private static func accept(
        _ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?,
        by assembly: inout PacketAssembly
    ) -> PacketAssembly.Event? {
        guard header.kind == .message, ComponentKind.beginsWithLoan(payload) else {
            return assembly.accept(header, payload: payload, descriptors: descriptors)
        }
        guard let records = EncodedMessage.loans(in: payload) else { return nil }
        precondition(records.count <= LoanRecord.limit, "loans beyond their limit")
        for (number, (record, hasFile)) in records.enumerated() {
            let kind: ComponentKind = hasFile ? .loanInNewSegment : .loan
            var bytes: [UInt8] = []
            bytes.append(littleEndian: kind.head(LoanRecord.size))
            bytes += record.bytes
            precondition(payload.dropFirst(number * recordSize).starts(with: bytes), "a loan has one form")
            precondition(record.offset + record.count <= record.segmentSize, "memory beyond its segment")
        }
        let fileCount = 2 * records.count { $0.hasFile }
        if let descriptors, descriptors.count < fileCount { return nil }
        // What is lent has no bytes here.
        let loans = records.map { MessageMemory(.bytes([]), count: $0.0.count) }
        return assembly.accept(header, payload: payload, descriptors: descriptors, loans: loans)
    }

    /// The bytes of a loan in a message.
    private static let recordSize = ComponentKind.headSize + LoanRecord.size

    /// A message that is accepted is one that this library could have sent: sent again, it is the same bytes.
    private static func checkDecoding(_ encoded: EncodedMessage) {
        let decoded = encoded.decoded(
            resolve: { address, end in SendRight(DeadPort(address), with: end.map { ReceivedEnd($0, of: .unknown) }) },
            map: { file, count in
                if count > UInt64(MemoryPool.largestLoan) { return nil }
                return sealed.map { MessageMemory(.sealed($0, file), count: Int(count)) }
            })
        guard let message = decoded else { return }
        precondition(message.components.count == encoded.componentCount, "a component was lost")
        guard let again = try? OutgoingMessage(message) else { preconditionFailure("what was taken cannot be sent") }
        let (payload, fileCount) = withoutLoans(encoded)
        precondition(again.bytes == payload, "a message has one form")
        precondition(again.descriptors.count + fileCount == encoded.descriptors.count, "a descriptor was lost")
    }

    /// The records of a message as if its memory were copied, which has no bytes here; and how many files came with it.
    private static func withoutLoans(_ encoded: EncodedMessage) -> (payload: [UInt8], fileCount: Int) {
        let prefix = encoded.payload.prefix(encoded.loans.count * recordSize)
        let fileCount =
            2
            * stride(from: 0, to: prefix.count, by: recordSize).count {
                prefix[$0] == ComponentKind.loanInNewSegment.rawValue
            }
        var payload = Array(encoded.payload.dropFirst(prefix.count))
        var position = 0
        while position < payload.count {
            if payload[position] == ComponentKind.lentMemory.rawValue {
                payload[position] = ComponentKind.copiedMemory.rawValue
            }
            position += ComponentKind.headSize + Int(payload.littleEndian(at: position + 4) as UInt32)
        }
        return (payload + encoded.tail, fileCount)
    }

    /// Stands for the mapping of sealed memory.
    private static let sealed = try? SharedMemory.make(size: 1).memory

    private struct Packet {
        var bytes: [UInt8]
        var descriptors: [SharedDescriptor]?
    }

    private static func packets(_ input: [UInt8]) -> [Packet] {
        var packets: [Packet] = []
        var count = 0
        var rest = input[...]
        while rest.count >= 3 {
            let head = Array(rest.prefix(3))
            let bytes = Array(rest.dropFirst(3).prefix(Int(head[0]) | Int(head[1]) << 8))
            rest = rest.dropFirst(3 + bytes.count)
            packets.append(Packet(bytes: bytes, descriptors: descriptors(Int(head[2]), after: &count)))
        }
        return packets
    }

    /// The next ones, as many as needed: a message has none twice.
    private static func descriptors(_ added: Int, after count: inout Int) -> [SharedDescriptor]? {
        if added == 255 { return nil }
        let range = count..<count + min(added, packetDescriptorLimit)
        count = range.upperBound
        return range.map { descriptors[$0 % descriptors.count] }
    }

    /// The decoder passes descriptors on and releases them, nothing else.
    private static let descriptors = (0..<4096).map { _ in SharedDescriptor(owning: 0) }
}

extension OutgoingMessage {
    /// All of the payload.
    fileprivate var bytes: [UInt8] {
        var first: [UInt8] = []
        if let firstWord { first.append(littleEndian: UInt64(littleEndian: firstWord)) }
        return first + records + tail
    }
}
