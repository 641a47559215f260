// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port travels inside one descriptor of a message: one end of a pair of packet sockets. The old owner fills the
// pair through the other end, and then sends the message. The new owner reads everything, makes the port of it, and
// answers through the pair that it takes the port. The kernel decides with that packet: if it accepts it, the port is the
// new owner's from then on. An old owner that takes the port back shuts its end down first, for receiving: then the answer
// is refused, or is there already. A new owner whose answer is refused drops what it has got. If the old owner ends
// before, the kernel refuses the answer, too, and the port ends.
//
//   offered ──answer: taken──────────────▶ the new owner's
//      ╰──────answer: refused, withdrawn──▶ stays

import PortSystem
import Synchronization

enum PortTransfer {
    /// The most bytes of a port's snapshot, with all messages in its queue.
    static let sizeLimit = MessageLimits.payload

    /// Packs a port.
    ///
    /// - Returns: the old owner's end, and what travels in the message.
    /// - Throws: `messageTooLarge`; `tooManyDescriptors` when the kernel has no room for them; `descriptorsInFlight`,
    ///   `descriptorLimit`, `systemCallFailed`.
    static func pack(
        _ snapshot: PortSnapshot, _ descriptors: [SharedDescriptor]
    ) throws(PortError) -> (offer: PortOffer, descriptor: SharedDescriptor) {
        let bytes = snapshot.encoded
        if bytes.count > sizeLimit {
            throw PortError(.messageTooLarge, subject: .size(bytes.count, limit: sizeLimit))
        }
        let (entrance, travels) = try PortError.converting(sysPacketSocketPair())
        let file = try PortError.converting(SharedMemory.makeFile(of: bytes))
        try send([file], size: bytes.count, of: descriptors.count, over: entrance)
        var rest = descriptors[...]
        while !rest.isEmpty {
            try send(Array(rest.prefix(packetDescriptorLimit)), size: 0, of: descriptors.count, over: entrance)
            rest = rest.dropFirst(packetDescriptorLimit)
        }
        return (PortOffer(entrance), travels)
    }

    private static func send(
        _ descriptors: [SharedDescriptor], size: Int, of count: Int, over socket: SharedDescriptor
    ) throws(PortError) {
        let header = PacketHeader(
            kind: .port, descriptorCount: UInt16(descriptors.count), totalLength: UInt64(size))
        let outcome = try PortError.converting(
            sysSendPacket(socket.rawValue, head: header.words, descriptors: descriptors))
        if outcome != .sent { throw PortError(.tooManyDescriptors, subject: .size(count, limit: 0, of: .descriptors)) }
    }

    /// Unpacks a port that is offered.
    ///
    /// - Parameters:
    ///   - socket: what has come in the message.
    ///   - room: how many bytes its snapshot may have, and how many descriptors may travel with it.
    /// - Returns: its snapshot, as many descriptors as that says, and what they occupy.
    /// - Throws: `malformedPacket` when there is no port inside; `messageTooLarge`; `tooManyDescriptors`;
    ///   `descriptorsLost` when this process cannot have all its descriptors; `systemCallFailed`.
    static func unpack(
        _ socket: SharedDescriptor, room: ResourceUsage
    ) throws(PortError) -> (PortSnapshot, [SharedDescriptor], cost: ResourceUsage) {
        guard (try? sysIsPacketSocket(socket.rawValue)) == true else { throw PortError(.malformedPacket) }
        let (first, files) = try receive(over: socket)
        guard files.count == 1, first.totalLength <= UInt64(sizeLimit) else { throw PortError(.malformedPacket) }
        let size = Int(first.totalLength)
        if size > room.bytes { throw PortError(.messageTooLarge, subject: .size(size, limit: room.bytes)) }
        guard let bytes = try PortError.converting(SharedMemory.contents(of: files[0], size: size)),
            let snapshot = PortSnapshot(encoded: bytes)
        else { throw PortError(.malformedPacket) }
        let count = snapshot.descriptorCount
        if count > room.descriptors {
            throw PortError(.tooManyDescriptors, subject: .size(count, limit: room.descriptors, of: .descriptors))
        }
        var descriptors: [SharedDescriptor] = []
        while descriptors.count < count {
            let received = try receive(over: socket).descriptors
            if received.isEmpty { throw PortError(.malformedPacket) }
            descriptors += received
        }
        guard descriptors.count == count else { throw PortError(.malformedPacket) }
        return (snapshot, descriptors, ResourceUsage(bytes: size, descriptors: count))
    }

    private static func receive(
        over socket: SharedDescriptor
    ) throws(PortError) -> (header: PacketHeader, descriptors: [SharedDescriptor]) {
        let (outcome, head, _) = try PortError.converting(
            sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.size))
        switch outcome {
        case .packet(_, let descriptors):
            guard let header = head.flatMap({ PacketHeader($0) }), header.kind == .port,
                descriptors.count == header.descriptorCount
            else { throw PortError(.malformedPacket) }
            let shares = DescriptorShares()
            if !descriptors.allSatisfy({ shares.admits($0.rawValue) }) { throw PortError(.descriptorsLost) }
            return (header, descriptors)
        case .descriptorsLost: throw PortError(.descriptorsLost)
        case .truncated, .wouldBlock, .peerClosed: throw PortError(.malformedPacket)
        }
    }

    // MARK: The new owner's answer

    /// Answers that this process takes the port.
    ///
    /// - Returns: false when it was taken back, or its owner has ended: it is not this process's.
    static func take(_ socket: SharedDescriptor) -> Bool { answer(nil, over: socket) }

    /// Answers that this process does not take the port. It goes on at its owner.
    static func refuse(_ reason: PortError.Code, over socket: SharedDescriptor) { _ = answer(reason, over: socket) }

    private static func answer(_ refusal: PortError.Code?, over socket: SharedDescriptor) -> Bool {
        let header = PacketHeader(kind: .port, messageID: Int32(refusal?.rawValue ?? 0))
        return (try? sysSendPacket(socket.rawValue, head: header.words)) == .sent
    }
}

/// A port that is offered to another process: the old owner's end.
final class PortOffer: Sendable {
    /// What has become of it.
    enum Outcome: Equatable, Sendable {
        /// It is the new owner's.
        case taken
        /// It is the old owner's, and why.
        case stays(PortError)
    }

    private let socket: SharedDescriptor  // immutable
    private let outcome = Mutex<Outcome?>(nil)

    fileprivate init(_ socket: SharedDescriptor) { self.socket = socket }

    /// Readable when there is an answer.
    var rawValue: CInt { socket.rawValue }

    /// What has become of the port; nil while there is no answer. Never waits.
    func poll() -> Outcome? {
        outcome.withLock { outcome in
            if outcome == nil { outcome = receive() }
            return outcome
        }
    }

    /// Takes the port back, unless there is an answer: it stays for that reason. Never waits.
    func withdraw(_ reason: PortError) -> Outcome {
        outcome.withLock { found in
            if let found { return found }
            // An answer is refused from now on, or is there.
            sysShutDown(socket.rawValue, receivingOnly: true)
            let final: Outcome = if case .taken? = receive() { .taken } else { .stays(reason) }
            found = final
            return final
        }
    }

    private func receive() -> Outcome? {
        guard let (outcome, head, _) = try? sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.size) else {
            return .stays(PortError(.notTransferable, subject: .reason(.notTaken)))
        }
        switch outcome {
        case .wouldBlock: return nil
        case .packet(_, let descriptors):
            guard descriptors.isEmpty, let header = head.flatMap({ PacketHeader($0) }), header.kind == .port else {
                return .stays(PortError(.malformedPacket))
            }
            return header.messageID == 0 ? .taken : .stays(Self.error(refusal: header.messageID))
        case .truncated, .descriptorsLost: return .stays(PortError(.malformedPacket))
        case .peerClosed: return .stays(PortError(.notTransferable, subject: .reason(.notTaken)))
        }
    }

    private static func error(refusal code: Int32) -> PortError {
        let known: [PortError.Code] = [.messageTooLarge, .tooManyDescriptors, .descriptorsLost, .malformedPacket]
        if code == Int32(PortError.Code.directoryUntrusted.rawValue) {
            return PortError(.notTransferable, subject: .reason(.otherDirectory))
        }
        let found = known.first { Int32($0.rawValue) == code }
        return found.map { PortError($0) } ?? PortError(.notTransferable, subject: .reason(.notAccepted))
    }
}

extension PortError.StaticReason {
    fileprivate static let notTaken = Self("its receiver has not taken it")
    fileprivate static let otherDirectory = Self("its receiver has not opened the directory that it is in")
    fileprivate static let notAccepted = Self("its receiver accepts no receive rights of this process")
}
