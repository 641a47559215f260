// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A request by another process that a port be handed over to a port of a third one.
struct HandOverQuestion: Equatable, Sendable {
    /// Where the port of the successor is.
    let successor: PortAddress
    /// How long the owner may wait for what has to end before.
    let limit: Duration
    /// The longest time that an owner waits.
    static let longestLimit = Duration.seconds(60)

    init(successor: PortAddress, limit: Duration) { (self.successor, self.limit) = (successor, limit) }

    /// Reads a packet; nil when it breaks the format.
    init?(_ header: PacketHeader, _ payload: [UInt8]) {
        guard let path = String(validating: payload, as: UTF8.self), let address = PortAddress(received: path) else {
            return nil
        }
        let limit = Duration.milliseconds(Int(clamping: min(header.totalLength, UInt64(Int32.max))))
        self.init(successor: address, limit: min(limit, Self.longestLimit))
    }

    var packet: OutgoingPacket {
        let milliseconds = limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000
        let header = PacketHeader(kind: .handOver, totalLength: UInt64(clamping: milliseconds))
        return OutgoingPacket(header: header, payload: Array(successor.path.utf8)[...])
    }
}

/// What became of such a request.
enum HandOverAnswer: Equatable, Sendable {
    /// The port is the successor's.
    case done
    /// The owner does not allow it.
    case notAllowed
    /// The port stays, because of an error with this code.
    case failed(code: Int32)

    init?(_ header: PacketHeader) {
        switch header.componentCount {
        case 1: self = .done
        case 2: self = .notAllowed
        case 3: self = .failed(code: header.messageID)
        default: return nil
        }
    }

    var packet: OutgoingPacket {
        let header =
            switch self {
            case .done: PacketHeader(kind: .handOver, componentCount: 1)
            case .notAllowed: PacketHeader(kind: .handOver, componentCount: 2)
            case .failed(let code): PacketHeader(kind: .handOver, messageID: code, componentCount: 3)
            }
        return OutgoingPacket(header: header)
    }
}
