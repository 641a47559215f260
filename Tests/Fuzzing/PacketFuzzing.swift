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
                let isBeyondRange = payload.prefix(56).enumerated().contains { $0 % 8 == 7 && $1 > 127 }
                precondition(
                    isBeyondRange || statistics.payload.elementsEqual(payload.prefix(56)), "numbers that no peer sent")
            case .probed(let probe, let token):
                let again = PacketHeader(probe, about: token)
                precondition(again.probe == probe && token == header.asks && token != 0, "a probe of another wait")
            case .probeAnswered(let probe, let token, let hasReturned):
                let again = PacketHeader(answering: probe, about: token, hasReturned: hasReturned)
                precondition(again.probe == probe && token == header.answers, "an answer about another request")
                precondition(again.componentCount == header.componentCount, "an answer that no peer gave")
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
        guard assembly.hasRoomForPiece else {
            return assembly.accept(header, payload: payload, descriptors: descriptors)
        }
        var hasRoom = false
        let count = try? assembly.land { room in
            hasRoom = payload.count <= room.freeCapacity
            if hasRoom { for byte in payload { room.append(byte) } }
        }
        guard hasRoom, count == payload.count else { return nil }
        if header.kind == .continuation { return assembly.didLand(payload.count, header, descriptors: descriptors) }
        let bytes = assembly.removeWritten(payload.count)
        precondition(bytes == payload, "bytes that no peer sent")
        return assembly.accept(header, payload: bytes, descriptors: descriptors)
    }

    /// A message that is accepted is one that this library could have sent: sent again, it is the same bytes.
    private static func checkDecoding(_ encoded: EncodedMessage) {
        let decoded = encoded.decoded { address, end in
            SendRight(DeadPort(address), with: end.map { ReceivedEnd($0, of: .unknown) })
        }
        guard let message = decoded else { return }
        precondition(message.components.count == encoded.componentCount, "a component was lost")
        guard let again = try? OutgoingMessage(message) else { preconditionFailure("what was taken cannot be sent") }
        precondition(again.bytes == encoded.payload + encoded.tail, "a message has one form")
        precondition(again.descriptors.count == encoded.descriptors.count, "a descriptor was lost")
    }

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
