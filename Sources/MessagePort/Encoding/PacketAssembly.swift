// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Reassembles a connection's packets. It has no effects of its own: the caller reads the packets, in `land` by its
// closure.
//
//   idle ──message, not complete──▶ begun ──continuation, complete──▶ idle
//                                     │ abort ──▶ idle
//
// While a message for the port is begun, small whole messages may come: `PieceAllowance`.
//
// It trusts nothing that it did not count: a length is checked against the limit before anything is stored, memory is
// written only with the bytes that arrived, and each packet that does not fit the state ends the connection.

import PortSystem

struct PacketAssembly: ~Copyable, Sendable {
    /// The result of a packet.
    enum Event: Sendable {
        /// Nothing yet.
        case incomplete
        /// A whole message. `asks`: the token under which a reply is expected, zero for none; `answers`: the token of
        /// the message that it replies to, zero for a message to the port.
        case message(EncodedMessage, asks: UInt64, answers: UInt64)
        /// A whole message whose descriptors were lost on the way; the tokens are as above.
        case withoutDescriptors(asks: UInt64, answers: UInt64)
        /// A whole message to the port that has more bytes than the port accepts; it was not stored.
        case tooLarge(asks: UInt64)
        /// A whole message that answers an unknown request, or one whose requester no longer waits; it was not stored.
        case unwanted(asks: UInt64)
        /// The message that asked with the token will not be answered; the reason is an error code, zero for none.
        case replyDropped(token: UInt64, reason: Int32, delivery: PortError.Delivery)
        /// The message that asked with the token is answered with an error.
        case replyFailed(token: UInt64, code: Int32, text: String)
        /// The requester no longer waits for a reply to the message that asked with the token.
        case abandoned(token: UInt64)
        /// The port at the other side is gone.
        case portEnded
        /// The peer asks for the port's statistics; the answer goes under the token.
        case statisticsAsked(token: UInt64)
        /// The answer to such a request.
        case statistics(PortStatistics, token: UInt64)
        /// The peer asks for copies of the messages that are dequeued, with at most `byteLimit` bytes of each.
        case tapAsked(byteLimit: Int)
        /// Whether the port allows that.
        case tapAnswered(Bool)
        /// A message that was dequeued.
        case shown(TappedMessage)
        /// The client's number of the connection, whose messages are counted from now on.
        case creditOpened(key: UInt64)
        /// A sender asks for room for the connection with the number.
        case creditAsked(CreditQuestion)
        /// The peer asks whether a thread may answer the request that asked with the token.
        case probed(WaitProbe, token: UInt64)
        /// None may; and whether the wait that has started the probe was reached.
        case probeAnswered(WaitProbe, token: UInt64, hasReturned: Bool)
        /// The port has moved to another process.
        case portMoved
        /// The packet is from the port's owner.
        case ownerNamed
        /// The peer asks that the port be handed over to another one, which is at the address.
        case handOverAsked(HandOverQuestion)
        /// What became of that.
        case handOverAnswered(HandOverAnswer)
        /// The read end of a pipe, whose write ends travel with rights to the port; nil when it was lost.
        case presence(SharedDescriptor?)
        /// The page on which the other side notes the loans that it returns to a lender; nil when it was lost.
        case returnPage(SharedDescriptor?, lender: UInt64)
        /// The other side has returned a loan to a lender.
        case returned(UInt64, lender: UInt64, isSegmentUnknown: Bool)
        /// A segment of a lender at the other side has ended.
        case segmentEnded(UInt64, lender: UInt64)
        /// The other side does not talk to this process.
        case refused(code: Int32)
        /// The packet breaks the format.
        case violation
    }

    struct PartialMessage: ColdValue, ~Copyable {
        static let blank = ColdBox<PartialMessage>()

        /// The event that it will be when it is whole.
        enum Outcome: UInt8, Sendable {
            case message, withoutDescriptors, tooLarge, unwanted
        }

        var header = PacketHeader(kind: .message)
        var message = EncodedMessage()
        var outcome = Outcome.unwanted
        /// Whether its bytes are stored, or only counted.
        var isStored: Bool { outcome == .message || outcome == .withoutDescriptors }
        /// How many bytes have come.
        var count = 0
        /// How many descriptors are still to come.
        var missingDescriptors = 0
        /// Whether the missing bytes are one body, which is the message's tail.
        var isTail = false
        /// How many bytes of other messages may come before the next piece.
        var allowance = PieceAllowance()

        var missing: Int { Int(header.totalLength) - count }

        /// Its next piece was stored, or was only to be counted.
        ///
        /// - Returns: false if that breaks the format.
        mutating func didLand(_ size: Int, _ piece: PacketHeader, _ descriptors: [SharedDescriptor]?) -> Bool {
            guard size > 0, piece.ownDescriptorCount == min(missingDescriptors, packetDescriptorLimit),
                descriptors.map({ $0.count == piece.ownDescriptorCount }) ?? true
            else { return false }
            missingDescriptors -= piece.ownDescriptorCount
            if outcome == .message {
                if let descriptors {
                    message.descriptors += descriptors
                } else {
                    (outcome, message.descriptors) = (.withoutDescriptors, [])
                }
            }
            count += size
            allowance.didPass(size, missing: missing)
            return true
        }

        /// Changes the bytes to which the next piece is appended.
        mutating func withEnd<Result, Failure: Error>(
            _ body: (inout [UInt8]) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            isTail ? try body(&message.tail) : try body(&message.payload)
        }
    }

    /// The message that has come in part; none while it is blank.
    var partial = ColdStorage<PartialMessage>()

    /// Whether a message is partial.
    var isBegun: Bool { !partial.isBlank }

    /// Whether the partial message is for the port.
    var isBegunForPort: Bool { isBegun && partial.value.header.answers == 0 }

    /// Whether the partial message is only counted, because it is larger than its port accepts.
    var isPartialTooLarge: Bool { isBegun && partial.value.outcome == .tooLarge }

    /// Whether the next packet may complete a message for the port: the last piece of a partial one, a whole one between
    /// two pieces, or the first piece of another.
    var mayNeedSlot: Bool { !isBegun || isBegunForPort }

    /// Whether the next piece of a message can be written into its final memory.
    var hasRoomForPiece: Bool { isBegun && partial.value.isStored }

    /// Appends a packet's payload to the partial message: `write` writes at most as much as is missing. The caller then
    /// calls `didLand` or `removeWritten`.
    ///
    /// - Returns: how much was written.
    mutating func land(_ write: (inout OutputSpan<UInt8>) throws(SystemError) -> Void) throws(SystemError) -> Int {
        if !isBegun { return 0 }
        let missing = partial.value.missing
        return try partial.value.withEnd { (bytes) throws(SystemError) in
            try bytes.land(min(missing, PacketHeader.payloadLimit), of: missing, write)
        }
    }

    /// The bytes written are the next piece, which came with these descriptors; nil if they were lost.
    mutating func didLand(_ count: Int, _ header: PacketHeader, descriptors: [SharedDescriptor]?) -> Event {
        if isBegun, partial.value.didLand(count, header, descriptors) { return finish() }
        giveUp()
        return .violation
    }

    /// The bytes written are not the next piece.
    ///
    /// - Returns: the bytes, which are removed.
    mutating func removeWritten(_ count: Int) -> [UInt8] {
        if !isBegun { return [] }
        return partial.value.withEnd { bytes in
            defer { bytes.removeLast(count) }
            return Array(bytes.suffix(count))
        }
    }

    /// For tests: how much is reserved for the partial message.
    var capacity: Int { partial.value.message.payload.capacity + partial.value.message.tail.capacity }

    /// Nothing more comes: a partial message will not be completed.
    mutating func giveUp() { partial = ColdStorage() }

    /// Accepts one packet: its head, what follows it, and the descriptors that came with it, of which unused ones are
    /// closed; nil if they were lost. A message to the port with more bytes than the limit is not stored, nor one that
    /// answers and is not wanted: no requester awaits it. The loans are those of a message that begins.
    mutating func accept(
        _ header: PacketHeader, payload: consuming [UInt8], descriptors received: [SharedDescriptor]?,
        loans: [MessageMemory] = [], limit: Int = MessageLimits.payload, isWanted: Bool = true
    ) -> Event {
        let descriptors = received ?? []
        guard received == nil || header.ownDescriptorCount == descriptors.count else { return .violation }
        switch header.kind {
        case .message where isBegun: return insert(header, payload, received, loans, limit)
        case .message: return begin(header, payload, received, loans, limit, isWanted)
        case .continuation: return proceed(header, payload, received)
        case .abort where isBegun && payload.isEmpty && descriptors.isEmpty:
            giveUp()
            return .incomplete
        case .refused where payload.isEmpty && descriptors.isEmpty: return .refused(code: header.messageID)
        case .presence where header == .presence && payload.isEmpty: return .presence(received?.first)
        case .returnPage where header == .returnPage(to: header.totalLength) && payload.isEmpty:
            return .returnPage(received?.first, lender: header.totalLength)
        case .credit where !isBegun && payload.isEmpty: return Self.credit(header, descriptors)
        default: return !isBegun && descriptors.isEmpty ? Self.notice(header, payload) : .violation
        }
    }

    /// What a packet that is no part of a message amounts to.
    private static func notice(_ header: PacketHeader, _ payload: [UInt8]) -> Event {
        switch header.kind {
        case .replyDropped where payload.isEmpty:
            let delivery: PortError.Delivery =
                switch header.componentCount {
                case 1: .unread
                case 2: .read
                default: .unknown
                }
            return .replyDropped(token: header.answers, reason: header.messageID, delivery: delivery)
        case .replyFailed where payload.count <= PortError.remoteTextLimit:
            let text = String(decoding: payload, as: UTF8.self)
            return .replyFailed(token: header.answers, code: header.messageID, text: text)
        case .abandoned where payload.isEmpty: return .abandoned(token: header.asks)
        case .portEnded where payload.isEmpty: return .portEnded
        case .moved where payload.isEmpty: return .portMoved
        case .owner where payload.isEmpty: return .ownerNamed
        case .handOver where header.componentCount == 0:
            return HandOverQuestion(header, payload).map { .handOverAsked($0) } ?? .violation
        case .handOver where payload.isEmpty:
            return HandOverAnswer(header).map { .handOverAnswered($0) } ?? .violation
        case .statistics where header.answers == 0:
            return header.asks != 0 && payload.isEmpty ? .statisticsAsked(token: header.asks) : .violation
        case .statistics:
            return PortStatistics(payload: payload).map { .statistics($0, token: header.answers) } ?? .violation
        case .tap where payload.isEmpty:
            if header.componentCount > 0 { return .tapAnswered(header.componentCount == 1) }
            return .tapAsked(byteLimit: Int(clamping: header.totalLength))
        case .shown: return TappedMessage(header, payload: payload).map { .shown($0) } ?? .violation
        case .probe where header.asks != 0 && payload.isEmpty: return .probed(header.probe, token: header.asks)
        case .probeAnswer where header.answers != 0 && header.componentCount <= 1 && payload.isEmpty:
            let hasReturned = header.componentCount == 1
            return .probeAnswered(header.probe, token: header.answers, hasReturned: hasReturned)
        case .returned where header.asks != 0 && header.componentCount <= 1 && payload.isEmpty:
            return .returned(header.asks, lender: header.totalLength, isSegmentUnknown: header.componentCount == 1)
        case .segmentEnded where header.asks != 0 && payload.isEmpty:
            return .segmentEnded(header.asks, lender: header.totalLength)
        // The connection handles offers of rings, changes of the path and wake-ups; here they break the format, as do
        // notices with a payload that they do not have.
        case .replyDropped, .replyFailed, .abandoned, .portEnded, .tap, .message, .continuation, .abort, .refused,
            .ring, .ringAnswer, .pathChange, .wakeUp, .credit, .probe, .probeAnswer, .moved, .port, .presence,
            .handOver, .owner, .returnPage, .returned, .segmentEnded:
            return .violation
        }
    }

    /// What a packet of the flow control amounts to. Answers come over connections that are not assembled.
    private static func credit(_ header: PacketHeader, _ descriptors: [SharedDescriptor]) -> Event {
        guard header.asks != 0, header.answers == 0, descriptors.count <= 1 else { return .violation }
        if header.componentCount == 0 { return descriptors.isEmpty ? .creditOpened(key: header.asks) : .violation }
        guard let purpose = CreditQuestion.Purpose(rawValue: header.componentCount) else { return .violation }
        return .creditAsked(CreditQuestion(key: header.asks, purpose: purpose, sentCount: descriptors.first))
    }

    /// A message between two pieces of another.
    private mutating func insert(
        _ header: PacketHeader, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?,
        _ loans: [MessageMemory], _ limit: Int
    ) -> Event {
        guard isBegunForPort, header.answers == 0, header.totalLength == UInt64(payload.count),
            header.componentCount <= UInt32(MessageLimits.components), header.descriptorCount == 0,
            header.asks == 0 || header.asks != partial.value.header.asks,
            partial.value.allowance.spend(
                PieceAllowance.cost(payload.count, components: Int(header.componentCount)))
        else { return .violation }
        let begun = partial.take()
        defer { partial = begun }
        return begin(header, payload, descriptors, loans, limit, true)
    }

    private mutating func begin(
        _ header: PacketHeader, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?,
        _ loans: [MessageMemory], _ limit: Int, _ isWanted: Bool
    ) -> Event {
        guard header.totalLength <= UInt64(MessageLimits.payload),
            header.componentCount <= UInt32(MessageLimits.components),
            Int(header.descriptorCount) <= MessageLimits.descriptors
        else { return .violation }
        let outcome: PartialMessage.Outcome =
            header.answers == 0 && header.totalLength > UInt64(limit)
            ? .tooLarge : !isWanted ? .unwanted : descriptors == nil ? .withoutDescriptors : .message
        if outcome == .message, let descriptors, header.totalLength == UInt64(payload.count),
            Int(header.descriptorCount) == descriptors.count
        {
            let whole = EncodedMessage(
                id: header.messageID, componentCount: Int(header.componentCount), payload: payload,
                descriptors: descriptors, loans: loans, confirmation: header.confirmation)
            return .message(whole, asks: header.asks, answers: header.answers)
        }
        let message = EncodedMessage(
            id: header.messageID, componentCount: Int(header.componentCount), confirmation: header.confirmation)
        var piece = PartialMessage(
            header: header, message: message, outcome: outcome, count: payload.count,
            missingDescriptors: Int(header.descriptorCount) - header.ownDescriptorCount)
        piece.allowance.didPass(payload.count, missing: piece.missing)
        if piece.isStored {
            piece.message.payload = payload
            piece.message.descriptors = descriptors ?? []
            piece.message.loans = loans
        }
        if piece.isStored, piece.missing > 0 {
            piece.isTail = piece.message.isFollowedByBody(of: piece.missing)
            // Reserves what was announced, up to an amount that a false count may cost.
            let room = min(piece.missing, Tuning.trustedLength)
            piece.withEnd { $0.reserveCapacity($0.count + room) }
        }
        partial = ColdStorage(piece)
        return finish()
    }

    private mutating func proceed(_ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?)
        -> Event
    {
        if hasRoomForPiece { partial.value.withEnd { $0 += payload } }
        return didLand(payload.count, header, descriptors: descriptors)
    }

    /// - Returns: the message, if it is whole.
    private mutating func finish() -> Event {
        let missing = partial.value.missing
        if missing > 0 { return .incomplete }
        defer { giveUp() }
        if missing < 0 || partial.value.missingDescriptors > 0 { return .violation }
        let (asks, answers) = (partial.value.header.asks, partial.value.header.answers)
        return switch partial.value.outcome {
        case .message: .message(partial.value.message, asks: asks, answers: answers)
        case .withoutDescriptors: .withoutDescriptors(asks: asks, answers: answers)
        case .tooLarge: .tooLarge(asks: asks)
        case .unwanted: .unwanted(asks: asks)
        }
    }
}

extension [UInt8] {
    /// Appends at most `room` bytes, of the `missing` ones.
    ///
    /// It doubles the capacity each time, so that little is copied, but never reserves more than is missing.
    ///
    /// - Returns: how many were appended.
    fileprivate mutating func land(
        _ room: Int, of missing: Int, _ write: (inout OutputSpan<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError) -> Int {
        let old = count
        if capacity - count < room { reserveCapacity(count + Swift.min(missing, Swift.max(room, count))) }
        try append(addingCapacity: room, initializingWith: write)
        return count - old
    }
}
