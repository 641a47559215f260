// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// Most packets that one call receives, so that one busy connection does not keep others waiting.
    private static let packetBudget = 32

    /// Receives what has arrived. Never waits.
    ///
    /// - Parameters:
    ///   - core: the port that takes messages which answer nothing; while its queue is full, packets stay where they are and
    ///     their sender waits.
    ///   - limit: the most packets.
    ///   - endsLooking: the loop that looks into the ring by itself stops that when it has read a message to its end.
    ///   - isReported: the kernel says that something is in the socket.
    /// - Returns: how often it was read, whether there may be more: each time there was something; and whether it ended within
    ///   a message.
    @discardableResult
    func receive(
        into core: (any MessageSink)?, limit: Int = packetBudget, endsLooking: Bool = false, isReported: Bool = false
    ) -> (count: Int, hasMore: Bool, isWithinMessage: Bool) {
        let (result, isWithinMessage, mustUpdate, isBlocked) = assembly.withLock { arrival in
            let result = receive(into: core, &arrival, limit: limit, depth: isReported ? .reported : .quick)
            let isWithinMessage = arrival.assembly.isBegun
            if endsLooking, !isInherited, !isWithinMessage, !result.hasMore { _ = arrival.lane.endLooking() }
            return (result, isWithinMessage, noteUntold(arrival.lane), arrival.isBlocked)
        }
        // What a loop that looks cannot read now is told of otherwise.
        if isBlocked { endKeeping() }
        if mustUpdate { updateInterest() }
        flush()  // a peer that sends has perhaps read, and made room
        dropUnreadIfDeaf()
        return (result.count, result.hasMore, isWithinMessage)
    }

    /// Receives what has arrived, unless that is being done: by another thread, or further up on this one, where a message
    /// that nobody takes makes us answer that it is dropped.
    func receiveUnlessReceiving() {
        let core = port?.object
        let mustUpdate = assembly.withLockIfAvailable { arrival in
            _ = receive(into: core, &arrival, limit: Self.packetBudget, depth: .thorough)
            return noteUntold(arrival.lane)
        }
        if mustUpdate == true { updateInterest() }
        dropUnreadIfDeaf()
    }

    /// The port may have ended while its connection was being read, and have found the lock taken.
    func dropUnreadIfDeaf() {
        if isDeaf.load(ordering: .sequentiallyConsistent) { dropUnread() }
    }

    /// Receives what the peer sent to a port that is gone, and lets it go: who waits for room, or for a reply, hears of it.
    ///
    /// Does nothing while packets are being received: that may be further up on this thread, where the last reference to a
    /// port may go; whoever receives does it afterwards.
    func dropUnread() {
        if isInherited { return }
        assembly.withLockIfAvailable { arrival in
            // What is beyond that closes with the socket.
            while !closingCount.isAtLimit, receivePacket(&arrival, nil, depth: .thorough) {}
        }
    }

    /// - Parameters:
    ///   - core: as above.
    ///   - arrival: what is kept from one packet to the next.
    ///   - limit: the most packets.
    ///   - depth: how closely to look.
    /// - Returns: as above.
    private func receive(
        into core: (any MessageSink)?, _ arrival: inout ReceiveState, limit: Int, depth: PollDepth
    ) -> (count: Int, hasMore: Bool) {
        if isInherited { return (0, false) }
        defer { if isClosed { arrival.giveUp() } }
        arrival.mayReadOn = false
        var (count, isFirst) = (0, true)
        while count < limit {
            arrival.isBlocked = sender.isAwaitingRoom || mustWaitUntilClosed(core)
            if arrival.isBlocked { return (count, false) }
            // A burst asks by itself whether there is room; but not again and again when there is hardly any.
            if isFirst || arrival.mayReadOn, let core,
                let burst = receiveBurst(&arrival, core, limit: limit - count)
            {
                isFirst = false
                count += burst
                if burst > 0 {
                    if depth == .quick, count < limit, arrival.lane.isReadForNow { return (count, false) }
                    continue
                }
                arrival.mayReadOn = false
            }
            isFirst = false
            arrival.isBlocked = !arrival.mayReadOn && core.map { mustWait(for: $0, arrival.assembly) } == true
            if arrival.isBlocked { return (count, false) }
            arrival.mayReadOn = false
            count += 1
            guard receivePacket(&arrival, core, depth: depth) else { return (count, false) }
        }
        return (limit, true)
    }

    /// Whether nothing more is read until descriptors are closed: at the right's end, and for a port that is gone, whose
    /// packets are in nobody's account.
    private func mustWaitUntilClosed(_ core: (any MessageSink)?) -> Bool {
        port == nil ? holdBackUntilClosed() : core == nil && closingCount.isAtLimit
    }

    /// Whether nothing more is read for a port now.
    private func mustWait(for core: any MessageSink, _ assembly: borrowing PacketAssembly) -> Bool {
        // A message that was begun is finished. Asked before there is room, so that whoever has more than its share does not
        // stand in line for it.
        let isOver = !assembly.isBegun && ledger(of: core)?.isOver(owner) == true
        if isOver, core.sockets?.holdBack(self) == true { return true }
        // Of a message that was begun all but the last piece is read: that waits for a place in the queue.
        return assembly.mayNeedPlace && !core.hasRoomForSockets()
    }

    /// Receives one packet.
    ///
    /// - Returns: whether to go on.
    private func receivePacket(_ arrival: inout ReceiveState, _ core: (any MessageSink)?, depth: PollDepth) -> Bool {
        if isClosed { return false }
        if arrival.lane.hasRing { return receiveFromLanes(&arrival, core, depth: depth) }
        return receiveFromSocket(&arrival, core)
    }

    /// Receives one packet from the socket.
    ///
    /// - Returns: whether to go on.
    func receiveFromSocket(_ arrival: inout ReceiveState, _ core: (any MessageSink)?) -> Bool {
        do throws(SystemError) {
            if arrival.assembly.hasRoomForPiece { return try receivePieceFromSocket(&arrival, core) }
            let (outcome, head, payload) = try sysReceiveHeadedPacket(
                descriptor.rawValue, limit: PacketHeader.packetLimit, from: giver(core))
            switch outcome {
            case .packet(_, let descriptors): return take(head, payload, admitted(descriptors), &arrival, core)
            case .descriptorsLost: return take(head, payload, nil, &arrival, core)
            case .truncated: return refuse(.malformedPacket)
            case .wouldBlock: return false
            case .reset: return true
            case .peerClosed: return peerDidEnd()
            }
        } catch {
            // Without memory for a packet the kernel keeps it: it is read later.
            if !error.isMemoryShortage { close(PortError(error)) }
        }
        return false
    }

    /// Receives one packet from the socket, which is likely to be the next piece of a large message.
    private func receivePieceFromSocket(_ arrival: inout ReceiveState, _ core: (any MessageSink)?) throws(SystemError)
        -> Bool
    {
        var outcome = ReceiveOutcome.wouldBlock
        var head: PacketWords?
        let count = try arrival.assembly.land { (room) throws(SystemError) in
            (outcome, head) = try sysReceiveHeadedPacket(descriptor.rawValue, into: &room, from: giver(core))
        }
        switch outcome {
        case .packet(_, let descriptors): return takeLanded(head, count, admitted(descriptors), &arrival, core)
        case .descriptorsLost: return takeLanded(head, count, nil, &arrival, core)
        case .truncated: return refuse(.malformedPacket)
        case .wouldBlock: return false
        case .reset: return true
        case .peerClosed: return peerDidEnd()
        }
    }

    /// Takes a packet whose payload was written behind the message that was begun.
    private func takeLanded(
        _ head: PacketWords?, _ count: Int, _ descriptors: [SharedDescriptor]?, _ arrival: inout ReceiveState,
        _ core: (any MessageSink)?
    ) -> Bool {
        if let header = head.flatMap(PacketHeader.init), header.kind == .continuation {
            arrival.lane.didTakeFromSocket()
            let event = arrival.assembly.didLand(count, header, descriptors: descriptors)
            return handle(event, mustAsk: true, &arrival, core)
        }
        return take(head, arrival.assembly.takeBack(count), descriptors, &arrival, core)
    }

    /// - Returns: the descriptors that came with a packet; nil, as when they were lost, where this process has none to spare for
    ///   them.
    private func admitted(_ descriptors: [SharedDescriptor]) -> [SharedDescriptor]? {
        descriptors.isEmpty || DescriptorShares().admits(descriptors) ? descriptors : nil
    }

    private func giver(_ core: (any MessageSink)?) -> PendingCloses {
        PendingCloses(self, ledger(of: core))
    }

    /// All that the peer sent before it went has been read.
    ///
    /// - Returns: that there is no more.
    func peerDidEnd() -> Bool {
        // The end of a port ends what it receives; what it owes is still to be sent.
        if !(port != nil && state.withLock { $0.life.hasLostOwner }) { close(PortError(.peerDied)) }
        return false
    }

    /// Takes a packet from the socket; its descriptors are nil when they were lost.
    private func take(
        _ head: PacketWords?, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?,
        _ arrival: inout ReceiveState, _ core: (any MessageSink)?
    ) -> Bool {
        guard let head, let header = PacketHeader(head) else { return refuse(.malformedPacket) }
        switch header.kind {
        case .ring: return takeOffer(header, payload, descriptors, &arrival.lane)
        case .ringAnswer: return takeAnswer(header, payload, descriptors, &arrival.lane)
        case .bell where arrival.lane.promisedCount > 0: return takeOldBell(header, payload, descriptors)
        default:
            arrival.lane.didTakeFromSocket()
            return take(header, payload, descriptors, &arrival, core)
        }
    }

    /// Takes a packet, wherever it came from. Whose payload nobody else has keeps its memory.
    func take(
        _ header: PacketHeader, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?,
        _ arrival: inout ReceiveState, _ core: (any MessageSink)?
    ) -> Bool {
        // What was never asked cannot be answered. The field is zero in packets that answer nothing.
        if header.answers > 0, header.kind.mayAnswer, header.answers > state.withLock({ $0.requests.lastToken }) {
            return refuse(.malformedPacket)
        }
        var (limit, isWanted, mustAsk) = (MessageLimits.payload, true, true)
        if header.kind == .message {
            // Only a port takes messages that answer nothing.
            if port == nil, header.answers == 0 { return refuse(.malformedPacket) }
            let (isAwaited, isBreach, lookedOn) = state.withLock { state in
                // One token cannot stand for two requests.
                (
                    state.requests.isAwaited(header.answers), state.requests.isOwed(header.asks), state.noteMessages()
                )
            }
            if isBreach { return refuse(.malformedPacket) }
            if lookedOn { core?.clientMayCome() }
            isWanted = header.answers == 0 || isAwaited
            // What a port that has ended left unread is in nobody's account.
            if isWanted, core != nil, let ledger = ledger(of: core) {
                (limit, mustAsk) = ledger.charge(
                    owner, for: header, descriptors: descriptors?.count ?? 0, &arrival.charge)
            }
        }
        let event = arrival.assembly.take(
            header, payload: payload, descriptors: descriptors, limit: limit, isWanted: isWanted)
        return handle(event, mustAsk: mustAsk, &arrival, core)
    }

    /// - Parameters:
    ///   - event: what a packet amounts to.
    ///   - mustAsk: whether it has to be asked before the next packet whether its process may send more.
    ///   - arrival: what is kept from one packet to the next.
    ///   - core: the port.
    /// - Returns: whether to go on.
    func handle(
        _ event: consuming PacketAssembly.Event, mustAsk: Bool, _ arrival: inout ReceiveState,
        _ core: (any MessageSink)?
    ) -> Bool {
        defer { arrival.didTakePacket() }
        switch consume event {
        case .incomplete: return true
        case .message(let encoded, let asks, let answers):
            var hasRoom = false
            defer { arrival.mayReadOn = hasRoom && !mustAsk }
            return handle(encoded, asks: asks, answers: answers, &arrival.charge, core, &hasRoom)
        case .withoutDescriptors(let asks, let answers):
            loseMessage(asks: asks, answers: answers)
            return true
        case .tooLarge(let asks):
            if asks == 0 {
                core?.didDropTooLarge()
            } else {
                willOweReply(to: asks)
                dropReply(to: asks, because: .messageTooLarge, delivery: .unread)
            }
            return true
        case .unwanted(let asks):
            if asks == 0 { return true }
            willOweReply(to: asks)
            dropReply(to: asks)
            return true
        case .replyDropped(let token, let reason, let delivery):
            let known: [PortError.Code] = [.peerDied, .messageTooLarge, .descriptorsLost, .messageDropped]
            let code = known.first { Int32($0.rawValue) == reason } ?? .replyDropped
            failAwaited(token, PortError(code, delivery: delivery))
            return true
        case .replyFailed(let token, let code, let text):
            failAwaited(token, .remote(code: code, text: text))
            return true
        case .abandoned(let token):
            requesterGaveUp(token)
            return true
        case .portEnded:
            guard port == nil else { return refuse(.malformedPacket) }
            otherPortDidEnd()
            return true
        case .statisticsAsked(let token):
            guard port != nil else { return refuse(.malformedPacket) }
            if let core { answerQuestion(token, about: core) }
            return true
        case .watchAsked(let byteLimit):
            guard port != nil else { return refuse(.malformedPacket) }
            if let core { beginWatch(of: core, byteLimit: byteLimit) }
            return true
        // Questions go over connections of their own.
        case .statistics, .watchAnswered, .shown: return refuse(.malformedPacket)
        case .refused(let code):
            close(Self.failure(refusal: code))
            return false
        case .violation: return refuse(.malformedPacket)
        }
    }

    private func handle(
        _ encoded: consuming EncodedMessage, asks: UInt64, answers: UInt64, _ charge: inout PeerCharge?,
        _ core: (any MessageSink)?, _ hasRoom: inout Bool
    ) -> Bool {
        var message = encoded.decoded(resolve: { RightsTable.shared.right(receivedAt: $0) })
        if message == nil { return refuse(.malformedPacket) }
        // Its head did not tell of them.
        if let rightCount = message?.rightCount, rightCount > 0 {
            charge?.add(ResourceUsage(bytes: rightCount * ResourceUsage.right))
        }
        let target = asks == 0 ? nil : ReplyTarget(RemoteReplyReceiver(self, token: asks))
        message?.envelope.stamp(remoteSender: peer, charge: charge.take(), replyTarget: target)
        return deliver(&message, answering: answers, core, &hasRoom)
    }

    /// Drops a message for whose descriptors this process has no descriptor. Without them it is not what was
    /// sent: whoever waits for it, or for its answer, is told.
    private func loseMessage(asks: UInt64, answers: UInt64) {
        if asks != 0 {
            willOweReply(to: asks)
            dropReply(to: asks, because: .descriptorsLost, delivery: .unread)
        }
        if answers != 0 { failAwaited(answers, PortError(.descriptorsLost, delivery: .read)) }
    }

    /// Hands a message to whoever awaits it, or to the port, which takes it.
    ///
    /// - Parameters:
    ///   - message: the message.
    ///   - token: of the request that it answers; zero for none.
    ///   - core: the port.
    ///   - hasRoom: set to whether the port has room for another.
    /// - Returns: whether to go on.
    private func deliver(
        _ message: inout MachMessage?, answering token: UInt64, _ core: (any MessageSink)?, _ hasRoom: inout Bool
    ) -> Bool {
        if token != 0 {
            // Nobody awaits it any more: it comes too late.
            guard let target = takeAwaited(token), target.take() else { return true }
            message?.envelope.dropCharge()  // it was put together
            if let message { try? target.handOn(message) }
            return true
        }
        if core?.admitFromSocket(&message, &hasRoom) == true { return true }
        message?.replyTarget?.fail(PortError(.peerDied))
        return core == nil
    }

    /// Ends the connection because of what the peer sent, after telling it why.
    func refuse(_ code: PortError.Code) -> Bool {
        Self.sendRefusal(code, to: descriptor)
        close(PortError(code))
        return false
    }

    /// Tells a peer, if there is room, that it is not talked to.
    static func sendRefusal(_ code: PortError.Code, to socket: SharedDescriptor) {
        let header = PacketHeader(kind: .refused, messageID: Int32(code.rawValue))
        _ = try? sysSendPacket(socket.rawValue, head: header.words, body: [], descriptors: [])
    }

    /// What a peer's refusal means here.
    private static func failure(refusal: Int32) -> PortError {
        let known: [PortError.Code] = [.descriptorsLost, .malformedPacket, .descriptorLimit, .tooManyConnections]
        switch known.first(where: { Int32($0.rawValue) == refusal }) {
        case PortError.Code.descriptorLimit?:
            // It was accepted only to be refused: what was sent lies unread.
            return PortError(
                .descriptorLimit, subject: .reason(.init("it is the other process that has none")), delivery: .unread)
        case PortError.Code.tooManyConnections?: return PortError(.tooManyConnections, delivery: .unread)
        case let code?: return PortError(code)
        case nil: return PortError(.peerRefused)
        }
    }
}
