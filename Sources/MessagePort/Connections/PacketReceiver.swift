// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Receives over a connection: reads packets, charges them to the peer's process, assembles messages, and delivers each
// to the port, or to the request that awaits it. Nothing is read while the port's queue is full, while the peer's
// process is over its limits, or while replies to the peer wait for room: the packets stay where they are, and their
// sender waits.
//
// A stream of plain messages through a ring is received in batches: the headers of all that are there are read first;
// then the messages are charged together, get slots in the queue together, and are queued together. A plain loan is a
// batch of its own. Whatever else the ring holds is received packet by packet.
//
// It is a part of its connection, which each call passes in, as with `PacketSender`. In all functions `sink` is the
// port. `receivePacket` and those that handle the packet return whether to continue.

import PortSystem
import RunLoopCore
import Synchronization

/// The state of a connection between two packets.
struct ReceiveState: ~Copyable, Sendable {
    var channel = IncomingChannel()
    /// The charge for the message that is being assembled, in its sender's account.
    var charge: PeerCharge?
    /// The next packets of the ring that were peeked at, all of them plain.
    var packets: [PacketPrefix] = []
    /// Their messages, before they are queued.
    var messages = MessageBuffer()
    /// How many packets to peek at: fewer where the queue had no slots for all of the last batch.
    private var storedLimit = UInt8(Tuning.batchCount)
    var batchLimit: Int { Int(storedLimit) }
    /// Whether the peer has sent messages to the port, and is noted as one of its senders.
    var hasNotedSender = false
    /// Whether the last packet was a message for the port and there is room for another, also in its process's account:
    /// a thread that reads on at once need not check.
    var mayReadOn = false

    /// Nothing more comes: a partial message will not be completed.
    mutating func giveUp() {
        channel.assembly.giveUp()
        charge = nil
    }

    /// Notes that of `count` messages that may be read, this many have slots in the queue.
    mutating func didReserve(_ slots: Int, of count: Int) {
        storedLimit = UInt8(slots < count ? max(1, slots) : min(Tuning.batchCount, 2 * batchLimit))
    }
}

struct PacketReceiver: ~Copyable, Sendable {
    /// Locked while receiving, so that messages keep their order.
    let state = Mutex(ReceiveState())
    /// How many descriptors that came over the connection wait to be closed; made when the first has come.
    let closingCount = SetOnceReference<PendingCloseCount>()
    /// Whether nothing new is read, because the peer's process is over its limits. At the port's end changed under the
    /// lock of the port's sockets.
    let isThrottled = Atomic<Bool>(false)
    /// Whether the ring may hold data for which no wake-up is pending. Changed under the lock of `state`.
    let hasUnsignalledData = Atomic<Bool>(false)
    /// Whether the port is gone, and nothing more comes from the peer: unread data is the last. The connection's life
    /// records the first earlier, under its lock (`hasLostOwnSide`); this is loaded after each read, without that lock.
    let hasPortEnded = Atomic<Bool>(false)
    /// Whether nothing is received, because the port is moving to another process.
    let isFrozen = Atomic<Bool>(false)
    /// The ring that this end reads, closed with the connection or its port. Changed under the lock of `state`, when
    /// there are rings, and when the port has moved.
    let ring = ReplaceableReference<SharedRing>()
    /// What this end contributes to the rings. Set before `ring`.
    let ringEnd = Mutex<RingEnd?>(nil)
    /// The number of the polling period of a loop that polls the ring also while it handles messages; zero for none.
    /// Set under the lock of `state`.
    let polledPeriod = Atomic<UInt64>(0)
    /// What the port lets the peer send.
    let credit = PeerCredit()

    /// Whether as many descriptors wait to be closed as may.
    var isAtCloseLimit: Bool { closingCount.withObject { $0.isAtLimit } ?? false }

    // MARK: Reading

    /// Receives what has arrived. Never waits.
    ///
    /// - Parameters:
    ///   - sink: the port that takes messages which answer nothing; while its queue is full, packets stay where they
    ///     are and their sender waits.
    ///   - limit: the most packets.
    ///   - endsPolling: whether the loop that polls the ring stops polling when it has read a message to its end.
    ///   - depth: how thoroughly to poll.
    ///   - connection: this receiver's.
    /// - Returns: how many packets it read; whether there may be more; and whether it ended within a message.
    func receive(
        into sink: (any MessageSink)?, limit: Int, endsPolling: Bool, depth: PollDepth,
        from connection: SocketConnection
    ) -> (count: Int, hasMore: Bool, isWithinMessage: Bool) {
        if connection.isInherited { return (0, false, false) }
        Callouts.hold()
        let (result, isWithinMessage, mustUpdate) = state.withLock { state in
            let result = receivePackets(into: sink, &state, limit: limit, depth: depth, from: connection)
            let isWithinMessage = state.channel.assembly.isBegun
            if endsPolling, !isWithinMessage, !result.hasMore { state.channel.path.endPollingIfEmpty() }
            return (result, isWithinMessage, noteUnsignalledData(state.channel, at: connection))
        }
        Callouts.release()
        // What a polling loop cannot read now is reported otherwise.
        if result.isBlocked { connection.endPollingWhileHandling() }
        if mustUpdate { connection.updateInterest() }
        connection.flush()  // a peer that sends may have read, and made room
        if credit.askedKey != nil { connection.answerQuestion() }
        dropUnreadIfPortEnded(from: connection)
        return (result.count, result.hasMore, isWithinMessage)
    }

    /// Receives batches of plain messages, and other packets one by one, while the port takes them.
    ///
    /// - Returns: how many packets it read; whether there may be more; and whether what is there cannot be read now,
    ///   for example because there is no room.
    func receivePackets(
        into sink: (any MessageSink)?, _ state: inout ReceiveState, limit: Int, depth: PollDepth,
        from connection: SocketConnection
    ) -> (count: Int, hasMore: Bool, isBlocked: Bool) {
        defer { if connection.isClosed { state.giveUp() } }
        state.mayReadOn = false
        if isFrozen.load(ordering: .sequentiallyConsistent) { return (0, false, false) }
        var (count, isFirst) = (0, true)
        while count < limit {
            if connection.isAwaitingRoom || mustWaitUntilClosed(sink, connection) { return (count, false, true) }
            // A batch checks for room by itself; but not again and again when there is hardly any.
            let mayBatch = isFirst || state.mayReadOn
            isFirst = false
            if mayBatch, let sink, let batch = receiveBatch(&state, sink, limit: limit - count, from: connection) {
                count += batch
                if batch > 0 {
                    if depth == .quick, count < limit, state.channel.isReadForNow { return (count, false, false) }
                    continue
                }
                state.mayReadOn = false
            }
            if !state.mayReadOn, let sink, mustWait(for: sink, state.channel.assembly, connection) {
                return (count, false, true)
            }
            state.mayReadOn = false
            count += 1
            guard receivePacket(&state, sink, depth: depth, from: connection) else { return (count, false, false) }
            if depth == .quick, state.channel.isReadForNow { return (count, false, false) }
        }
        return (limit, true, false)
    }

    /// Whether nothing more is read until descriptors are closed: at the right's end, and for a dead port, whose
    /// packets are in no account.
    private func mustWaitUntilClosed(_ sink: (any MessageSink)?, _ connection: SocketConnection) -> Bool {
        connection.isPortsEnd ? sink == nil && isAtCloseLimit : connection.throttleUntilClosed()
    }

    /// Whether nothing more is read for a port now.
    private func mustWait(
        for sink: any MessageSink, _ assembly: borrowing PacketAssembly, _ connection: SocketConnection
    ) -> Bool {
        // A partial message is completed, with what comes between its pieces. Checked before there is room, so that a
        // process over its share does not wait in line for it.
        let isOver = !assembly.isBegun && connection.quotas(of: sink)?.isOver(connection.owner) == true
        if isOver, sink.sockets?.throttle(connection) == true { return true }
        return assembly.mayNeedSlot && !sink.hasRoomForSockets()
    }

    /// Notes whether the ring may hold data for which no wake-up is pending.
    ///
    /// - Returns: whether that has changed for the port's receivers.
    func noteUnsignalledData(_ channel: borrowing IncomingChannel, at connection: SocketConnection) -> Bool {
        let isNow = channel.hasUnsignalledData && !connection.isClosed
        return hasUnsignalledData.exchange(isNow, ordering: .sequentiallyConsistent) != isNow && connection.isPortsEnd
    }

    // MARK: Batches

    /// Moves the plain messages that come next in the ring into the port's queue, as far as there is room for them.
    ///
    /// - Returns: how many there were: none when there is no room, or no more may be read from the process; nil when
    ///   the next packet is of another kind, or on the socket.
    private func receiveBatch(
        _ state: inout ReceiveState, _ sink: any MessageSink, limit: Int, from connection: SocketConnection
    ) -> Int? {
        guard connection.isPortsEnd, sink.acceptsBatches, state.channel.path.isOnRing, !state.channel.assembly.isBegun,
            !connection.isClosed, let quotas = connection.quotas(of: sink)
        else { return nil }
        let most = min(limit, state.batchLimit)
        state.channel.path.consumer?.peekPlainMessages(&state.packets, atMost: most, size: Tuning.batchSize)
        var loan: MemoryBorrower.PendingLoan?
        if state.packets.isEmpty {
            // Memory is a batch of its own. Mostly there is nothing.
            if state.channel.path.consumer?.hasMore != true { return nil }
            loan = state.channel.path.consumer?.peekLoan(&state.packets).flatMap { connection.pendingLoan($0) }
            if loan == nil { return nil }
        }
        var isOver = false
        var low: ReceivedCredit?
        let lent = ResourceUsage(bytes: loan?.record.count ?? 0)
        let cost = reserveRoom(in: sink, for: &state, and: lent, from: connection, quotas, &isOver, &low)
        if cost.messages == 0 { return 0 }
        state.channel.path.didReadRing()
        if !state.hasNotedSender {
            state.hasNotedSender = true
            if connection.noteMessages() { sink.clientDidConnect() }
        }
        let envelope = MessageEnvelope(
            ofBatch: cost.messages, from: connection.peer, PeerCharge(quotas, connection.owner, cost))
        let byteCount =
            if let loan = loan.take() { readLoan(&state, loan, in: envelope) } else {
                readBatch(&state, count: cost.messages, in: envelope)
            }
        let hasRoom = sink.fillReserved(by: &state.messages, byteCount: byteCount, low: low)
        if !state.messages.isEmpty { state.messages = MessageBuffer() }  // the port is dead
        state.mayReadOn = hasRoom && !isOver
        return cost.messages
    }

    /// Charges a process for the first of the peeked packets, as many as it may send and as get slots in the queue; and
    /// for what is lent with a single one.
    ///
    /// - Returns: what was charged: as many messages as there are slots.
    private func reserveRoom(
        in sink: any MessageSink, for state: inout ReceiveState, and lent: ResourceUsage,
        from connection: SocketConnection, _ quotas: PeerQuotas, _ isOver: inout Bool, _ low: inout ReceivedCredit?
    ) -> ResourceUsage {
        let owner = connection.owner
        var cost = quotas.charge(owner, forFirstOf: state.packets, and: lent, &isOver)
        if cost.messages == 0 { return cost }
        let account = credit.account
        let (slots, isLow) = sink.reserveRoom(atMost: cost.messages, over: account)
        if isLow { low = account }
        state.didReserve(slots, of: cost.messages)
        if slots < cost.messages {
            var rest = lent
            for packet in state.packets[slots..<cost.messages] { rest += packet.cost }
            quotas.refund(rest, by: owner)
            cost -= rest
        }
        return cost
    }

    /// Reads the first `count` of the peeked packets out of the ring.
    ///
    /// - Returns: how many bytes their messages have.
    private func readBatch(
        _ state: inout ReceiveState, count: Int, in envelope: MessageEnvelope
    ) -> Int {
        var byteCount = 0
        for index in 0..<count {
            let packet = state.packets[index]
            let bytes = state.channel.path.consumer?.consumeBody(after: packet) ?? []
            state.messages.append(MachMessage(ofBatch: envelope, id: packet.messageID, .bytes(bytes)))
            byteCount += packet.byteCount
        }
        return byteCount
    }

    /// Reads the one peeked packet, which has memory, out of the ring.
    ///
    /// - Returns: how many bytes its message has.
    private func readLoan(
        _ state: inout ReceiveState, _ loan: consuming MemoryBorrower.PendingLoan, in envelope: MessageEnvelope
    ) -> Int {
        let (packet, count) = (state.packets[0], loan.record.count)
        state.channel.path.consumer?.skip(packet)
        state.messages.append(MachMessage(ofBatch: envelope, id: packet.messageID, .memory(loan.borrow())))
        return count
    }

    // MARK: Packets

    func receivePacket(
        _ state: inout ReceiveState, _ sink: (any MessageSink)?, depth: PollDepth, from connection: SocketConnection
    ) -> Bool {
        if connection.isClosed { return false }
        if let mayContinue = receivePlain(&state, sink, from: connection) { return mayContinue }
        switch state.channel.next(from: connection.descriptor, depth: depth, for: connection) {
        case .packet(let header, let payload, let descriptors):
            return accept(header, payload, descriptors, &state, sink, from: connection)
        case .piece(let header, let count, let descriptors):
            let event = state.channel.assembly.didLand(count, header, descriptors: descriptors)
            return handle(event, mustCheck: true, &state, sink, from: connection)
        case .rings(let header, let payload, let descriptors):
            return connection.acceptRings(header, payload, descriptors, &state.channel.path)
        case .nothing: return false
        case .again: return true
        case .ended:
            connection.peerDidEnd()
            return false
        case .malformed: return connection.refuse(.malformedPacket)
        case .failed(let error):
            // Without memory for a packet the kernel retains it: it is read later.
            if !error.isMemoryShortage { connection.close(PortError(error)) }
            return false
        }
    }

    /// Checks a packet from either path, charges the peer for a message that begins, and assembles it. A payload that
    /// nothing else retains keeps its memory.
    private func accept(
        _ header: PacketHeader, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?,
        _ state: inout ReceiveState, _ sink: (any MessageSink)?, from connection: SocketConnection
    ) -> Bool {
        // Only a token that was used can be answered. The field is zero in packets that answer nothing.
        if header.answers > 0, header.kind.mayAnswer, !connection.hasAsked(under: header.answers) {
            return connection.refuse(.malformedPacket)
        }
        var start = MessageStart()
        // A message between the pieces of another has a charge of its own.
        let isBetweenPieces = header.kind == .message && state.channel.assembly.isBegun
        var begun: PeerCharge?
        if isBetweenPieces { swap(&begun, &state.charge) }
        defer { if isBetweenPieces { swap(&begun, &state.charge) } }
        if header.kind == .message {
            guard let found = begin(header, isWhole: descriptors != nil, &state, sink, from: connection) else {
                return connection.refuse(.malformedPacket)
            }
            start = found
            // Most messages; the others are assembled.
            if descriptors?.isEmpty == true, start.isWanted, !isBetweenPieces,
                header.announcesOnlyOnePart(of: payload.count), payload.count <= start.limit,
                let bytes = EncodedMessage.removeOnlyBytes(&payload)
            {
                return deliver(bytes, header, mustCheck: start.mustCheck, &state, sink, from: connection)
            }
        }
        if header.kind == .abort, state.channel.assembly.isBegunForPort { didReceiveUnqueued(sink) }
        var (descriptors, loans): ([SharedDescriptor]?, [MessageMemory]) = (descriptors, [])
        if header.kind == .message, ComponentKind.beginsWithLoan(payload) {
            guard let borrowed = connection.borrow(with: payload, descriptors) else {
                return connection.refuse(.malformedPacket)
            }
            loans = borrowed.loans
            if borrowed.isLost { descriptors = nil }
        }
        let event = state.channel.assembly.accept(
            header, payload: payload, descriptors: descriptors, loans: loans, limit: start.limit,
            isWanted: start.isWanted)
        return handle(event, mustCheck: start.mustCheck, &state, sink, from: connection)
    }

    /// Does what a packet amounts to. With `mustCheck`, the next packet may be read only after a check that the process
    /// may send more.
    func handle(
        _ event: consuming PacketAssembly.Event, mustCheck: Bool, _ state: inout ReceiveState,
        _ sink: (any MessageSink)?, from connection: SocketConnection
    ) -> Bool {
        defer { if !state.channel.assembly.isBegun { state.charge = nil } }
        switch consume event {
        case .incomplete: break
        case .message(let encoded, let asks, let answers):
            var hasRoom = false
            defer { state.mayReadOn = hasRoom && !mustCheck }
            return decode(encoded, asks: asks, answers: answers, &state.charge, sink, &hasRoom, from: connection)
        case .withoutDescriptors(let asks, let answers):
            if answers == 0 { didReceiveUnqueued(sink) }
            connection.loseMessage(asks: asks, answers: answers)
        case .tooLarge(let asks):
            didReceiveUnqueued(sink)
            if asks == 0 { sink?.didDropTooLarge() }
            if asks != 0 { connection.bounce(asks, because: .messageTooLarge, delivery: .unread) }
        case .unwanted(let asks):
            let isDead = connection.isPortsEnd && sink == nil
            if asks != 0 {
                connection.bounce(asks, because: isDead ? .peerDied : nil, delivery: isDead ? .unread : .unknown)
            }
        case .creditOpened(let key):
            if !openCredit(key, sink, over: connection) { return connection.refuse(.malformedPacket) }
        case .creditAsked(let question):
            if !noteQuestion(question, sink, over: connection) { return connection.refuse(.malformedPacket) }
            return false
        case .presence(let end): return connection.acceptReadEnd(end, sink)
        case .replyDropped(let token, let reason, let delivery):
            connection.sender.credit.wasAnswered(token)
            let known: [PortError.Code] = [.peerDied, .messageTooLarge, .descriptorsLost, .messageDropped]
            let code = known.first { Int32($0.rawValue) == reason } ?? .replyDropped
            connection.failAwaited(token, PortError(code, delivery: delivery))
        case .replyFailed(let token, let code, let text):
            connection.sender.credit.wasAnswered(token)
            connection.failAwaited(token, .remote(code: code, text: text))
        case .abandoned(let token): connection.requesterGaveUp(token)
        case .refused(let code):
            connection.close(PortError(refusal: code))
            return false
        case let notice: return follow(notice, &state, sink, from: connection)
        }
        return true
    }
}
