// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// How a message begins.
struct MessageStart {
    /// The most bytes that it may have.
    var limit = MessageLimits.payload
    /// Whether something takes it: the port, or a request that awaits it.
    var isWanted = true
    /// Whether the next packet may be read only after a check that the process may send more.
    var mustCheck = true
}

extension PacketReceiver {
    /// Notes that a message begins, and charges the peer for it.
    ///
    /// - Returns: nil when it breaks the format.
    func begin(
        _ header: PacketHeader, isWhole: Bool, _ state: inout ReceiveState, _ sink: (any MessageSink)?,
        from connection: SocketConnection
    ) -> MessageStart? {
        // Only a port takes messages that answer nothing.
        if !connection.isPortsEnd, header.answers == 0 { return nil }
        let (isAwaited, isTokenTaken, hasOnlyObserved) = connection.messageDidBegin(header)
        if isTokenTaken { return nil }
        if hasOnlyObserved { sink?.clientDidConnect() }
        connection.announceMoveIfDue()
        var start = MessageStart()
        // A dead port takes nothing.
        start.isWanted = header.answers == 0 ? sink != nil : isAwaited
        if start.isWanted, sink != nil, let quotas = connection.quotas(of: sink) {
            (start.limit, start.mustCheck) = quotas.charge(
                connection.owner, for: header, areDescriptorsLost: !isWhole, &state.charge)
        }
        return start
    }

    /// The fast path: receives the next packet of the ring, if it is a whole message of one part, bytes. It may ask for a
    /// reply, or be one.
    ///
    /// - Returns: whether to continue; nil when the next packet is another.
    func receivePlain(
        _ state: inout ReceiveState, _ sink: (any MessageSink)?, from connection: SocketConnection
    ) -> Bool? {
        guard let packet = state.channel.peekPlain(), let header = PacketHeader(packet.head) else { return nil }
        if header.answers > 0, !connection.hasAsked(under: header.answers) {
            return connection.refuse(.malformedPacket)
        }
        guard let start = begin(header, isWhole: true, &state, sink, from: connection) else {
            return connection.refuse(.malformedPacket)
        }
        let bytes = state.channel.readPlain(packet)
        if header.answers == 0, packet.payloadSize > start.limit {
            return handle(.tooLarge(asks: header.asks), mustCheck: start.mustCheck, &state, sink, from: connection)
        }
        if !start.isWanted {
            return handle(.unwanted(asks: header.asks), mustCheck: start.mustCheck, &state, sink, from: connection)
        }
        return deliver(bytes, header, mustCheck: start.mustCheck, &state, sink, from: connection)
    }

    /// Delivers a whole message of one part, bytes; one to a port has been charged to its peer.
    func deliver(
        _ bytes: consuming [UInt8], _ header: PacketHeader, mustCheck: Bool, _ state: inout ReceiveState,
        _ sink: (any MessageSink)?, from connection: SocketConnection
    ) -> Bool {
        var message: MachMessage? = MachMessage(id: header.messageID, bytes: bytes)
        var hasRoom = false
        defer { state.mayReadOn = hasRoom && !mustCheck }
        stamp(&message, asks: header.asks, &state.charge, from: connection)
        return deliver(&message, answering: header.answers, sink, &hasRoom, from: connection)
    }

    /// Notes in a message its sender, its charge and its reply right.
    private func stamp(
        _ message: inout MachMessage?, asks: UInt64, confirming confirmation: SendConfirmation? = nil,
        _ charge: inout PeerCharge?, from connection: SocketConnection
    ) {
        let target =
            asks == 0 ? nil : ReplyTarget(RemoteReplyReceiver(connection, token: asks), confirming: confirmation)
        message?.envelope.stamp(remoteSender: connection.peer, charge: charge.take(), replyTarget: target)
    }

    /// Makes a whole message of its bytes and descriptors, with its sender, its charge and its reply right.
    func decode(
        _ encoded: consuming EncodedMessage, asks: UInt64, answers: UInt64, _ charge: inout PeerCharge?,
        _ sink: (any MessageSink)?, _ hasRoom: inout Bool, from connection: SocketConnection
    ) -> Bool {
        let confirmation = encoded.confirmation
        var lentSize = encoded.loans.reduce(0) { $0 + $1.count }
        var arrivals = PortArrivals()
        var isLost = false
        var message = encoded.decoded(
            resolve: { connection.receivedRight(at: $0, with: $1) },
            restore: { socket in
                arrivals.add(socket, within: { answers == 0 ? connection.roomForArrivals(at: sink) : nil }) {
                    (room) throws(PortError) in
                    try MachMessage.Component.receiveRight(arrivingIn: socket, room: room)
                }
            },
            map: { file, count in
                do throws(SystemError) {
                    let memory = try MessageMemory(sealedIn: file, count: count)
                    lentSize += memory?.mappedSize ?? 0
                    return memory
                } catch {
                    isLost = true
                    return MessageMemory([])
                }
            })
        if !arrivals.isEmpty { charge?.add(arrivals.cost) }  // before their sender learns that they were taken
        if !arrivals.settle(isDecoded: message != nil) {
            if arrivals.refusal == .malformedPacket { return connection.refuse(.malformedPacket) }
            // Its sender has the ports, and learns that over what they came in.
            if answers == 0 {
                didReceiveUnqueued(sink)
            } else {
                connection.failAwaited(answers, PortError(.messageDropped))
            }
            if asks != 0 { connection.bounce(asks, because: .messageDropped, delivery: .read) }
            return true
        }
        if message == nil { return connection.refuse(.malformedPacket) }
        if isLost {
            if answers == 0 { didReceiveUnqueued(sink) }
            connection.loseMessage(asks: asks, answers: answers)
            return true
        }
        if lentSize > 0 { charge?.add(ResourceUsage(bytes: lentSize)) }
        // The packet's header did not announce them.
        if let count = message?.rightCount, count > 0 { charge?.add(ResourceUsage(bytes: count * ResourceUsage.right)) }
        stamp(&message, asks: asks, confirming: confirmation, &charge, from: connection)
        return deliver(&message, answering: answers, sink, &hasRoom, from: connection)
    }

    /// Delivers a message to the request that awaits it under the token, or to the port, for token zero: sets
    /// `hasRoom` to whether that has room for another.
    private func deliver(
        _ message: inout MachMessage?, answering token: UInt64, _ sink: (any MessageSink)?, _ hasRoom: inout Bool,
        from connection: SocketConnection
    ) -> Bool {
        if token != 0 {
            connection.sender.credit.wasAnswered(token)
            // No request awaits it any more: it is too late.
            guard let target = connection.endAwaited(token), target.take() else { return true }
            message?.envelope.dropCharge()  // it is complete
            if let message { try? target.forward(message) }
            return true
        }
        let target = message?.replyTarget?.confirmation == .queued ? message?.replyTarget : nil
        if sink?.admitFromSocket(&message, &hasRoom, credit.account) == true {
            target?.confirm(.queued)
            return true
        }
        message?.replyTarget?.fail(PortError(.peerDied))
        return sink == nil
    }
}

extension SocketConnection {
    /// How large a port may be that comes over the connection: no larger than what its sender may occupy.
    ///
    /// - Returns: nil when none is accepted. Only a process of the same user may give this one a port, with files to
    ///   remove when that ends.
    fileprivate func roomForArrivals(at sink: (any MessageSink)?) -> ResourceUsage? {
        guard let sink, sink.acceptsReceiveRights, sysIsOwnUser(peer.userID), let quotas = quotas(of: sink) else {
            return nil
        }
        return quotas.withLock { $0.allowance(of: owner) }
    }
}
