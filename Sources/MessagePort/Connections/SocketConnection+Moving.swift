// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The port's end of a connection whose port moves to another process. The client's end stays as it is: it is connected to
// the same socket, which another process reads from now on.

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// From now on nothing is received, until `thaw`. No thread is receiving when this returns.
    func freeze() {
        receiver.isFrozen.store(true, ordering: .sequentiallyConsistent)
        receiver.state.withLock { _ in }
    }

    /// Whether nothing is received.
    var isFrozen: Bool { receiver.isFrozen.load(ordering: .sequentiallyConsistent) }

    func thaw() { receiver.isFrozen.store(false, ordering: .sequentiallyConsistent) }

    /// Whether a sender has asked for room over this connection, which is for that alone.
    var isQuestion: Bool { receiver.credit.askedKey != nil }

    /// Whether nothing is to be sent or awaited here but the answers to these tokens.
    func isQuiet(besides tokens: Set<UInt64>) -> Bool {
        if !sender.backlog.isIdle { return false }
        // Held while a reply is being sent.
        guard sender.lock.tryLock() else { return false }
        let isWithinMessage = sender.isWithinLargeMessage
        sender.unlock(over: self)
        if isWithinMessage { return false }
        return state.withLock { !$0.requests.awaitsReply && $0.requests.unansweredTokens.isSubset(of: tokens) }
    }

    /// Ends the rings, if there are some: everything is on the socket from now on, or is read and waits. The connection is
    /// frozen.
    ///
    /// - Returns: false when that is not possible now.
    func windUpRings() -> Bool {
        guard hasRings, !isClosed else { return true }
        guard sender.lock.tryLock() else { return false }
        let hasLeft = sender.channel.path.withLock { $0.leaveForGood() }
        sender.unlock(over: self)
        if !hasLeft { return false }
        receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent)
        let isIntact = receiver.state.withLock { state in
            let isIntact = state.channel.windUp(from: descriptor, for: self)
            _ = receiver.noteUnsignalledData(state.channel, at: self)
            return isIntact
        }
        if !isIntact { _ = refuse(.malformedPacket) }
        return true
    }

    /// The port stays. Where rings were wound up the client is notified as after a move, so that it can earn others.
    func renewRings() {
        let mustNotify = receiver.state.withLock { state in
            if !state.channel.path.mayNotReplaceRing { return false }
            loseRings(&state.channel.path)
            state.channel.path.resume(hadRings: true)
            return true
        }
        if !mustNotify { return }
        let former = sender.channel.path.withLock { $0.resetIfMoved() }
        withExtendedLifetime(former) {}  // released without the lock
        sink?.sockets?.releaseRings(of: self)
        if isClosed { return }
        receiver.credit.allowRename()
        sharedMemory.object?.lender.borrowerMayHaveMoved()
        announceMove()
    }

    /// What the next owner has to know, and the descriptors that have come of messages that are not received. The
    /// connection is frozen.
    func snapshot() -> (PortSnapshot.Connection, [SharedDescriptor]) {
        let (remainder, hadRings, unread) = receiver.state.withLock { state in
            let unread = state.channel.unread.removeAll()
            for packet in unread { state.channel.unread.append(packet) }
            return (state.channel.assembly.remainder, state.channel.path.mayHaveHadRings, unread)
        }
        let (use, lastToken) = state.withLock { ($0.use, $0.requests.lastToken) }
        let number: UInt8 =
            switch use {
            case .nothing: 0
            case .observing: 1
            case .messages: 2
            }
        let packets = unread.map { packet in
            PortSnapshot.Packet(
                head: packet.header.encoded, payload: packet.payload, descriptorCount: packet.descriptors?.count)
        }
        let saved = PortSnapshot.Connection(
            use: number, lastToken: lastToken, creditKey: receiver.credit.key,
            renames: UInt32(clamping: receiver.credit.renames.load(ordering: .relaxed)), partial: remainder?.0,
            hadRings: hadRings, hasAnnounced: hasAnnounced.load(ordering: .relaxed), unread: packets)
        return (saved, (remainder?.1 ?? []) + unread.flatMap { $0.descriptors ?? [] })
    }

    /// Continues a connection that another process has had.
    ///
    /// - Returns: false when that cannot have been.
    func resume(_ snapshot: PortSnapshot.Connection, _ descriptors: [SharedDescriptor]) -> Bool {
        var rest = descriptors[...]
        if let partial = snapshot.partial {
            let own = Array(rest.prefix(partial.descriptorCount))
            rest = rest.dropFirst(own.count)
            let isResumed = receiver.state.withLock { state in
                let isResumed = state.channel.assembly.resume(partial, own)
                if isResumed, let quotas = quotas(of: sink), let header = PacketHeader(partial.head) {
                    _ = quotas.charge(owner, for: header, areDescriptorsLost: false, &state.charge)
                }
                return isResumed
            }
            if !isResumed { return false }
        }
        hasAnnounced.store(snapshot.hasAnnounced, ordering: .relaxed)
        receiver.credit.formerKey.store(snapshot.creditKey, ordering: .relaxed)
        // It is notified of this move, too. After many moves of which it has read at once it chooses one number.
        receiver.credit.renames.store(Int32(clamping: snapshot.renames), ordering: .relaxed)
        receiver.credit.allowRename()
        receiver.state.withLock { state in
            state.channel.path.resume(hadRings: snapshot.hadRings)
            for packet in snapshot.unread {
                guard let header = PacketHeader(packet.head) else { continue }  // checked when it was decoded
                let own = packet.descriptorCount.map { Array(rest.prefix($0)) }
                rest = rest.dropFirst(own?.count ?? 0)
                state.channel.unread.append(
                    PendingPacket(header: header, payload: packet.payload, descriptors: own))
            }
            _ = receiver.noteUnsignalledData(state.channel, at: self)
        }
        state.withLock { state in
            state.requests.resume(after: snapshot.lastToken)
            if snapshot.use == 2 { state.use = .messages }
        }
        return true
    }

    /// Notifies the client that the port has moved, and to which process: first, so that what is sent after it, such as an
    /// answer to an offer of rings, is from the new owner.
    func announceMove() {
        enqueue(OutgoingPacket(header: PacketHeader(kind: .moved)))
        enqueue(OutgoingPacket(header: PacketHeader(kind: .owner)))
    }

    /// The same for one that had connected, and was not accepted, when the port was another process's: when its first message,
    /// or its offer of rings before that, has come. One that only asks awaits nothing but an answer.
    func announceMoveIfDue() {
        guard mustAnnounceMove.load(ordering: .relaxed), mustAnnounceMove.exchange(false, ordering: .relaxed) else {
            return
        }
        receiver.credit.allowRename()
        announceMove()
    }

    /// The connection is another process's: this process's descriptor is closed, and the peer notices nothing.
    /// What retains this connection, such as a message, has the number of `other`'s file from then on.
    func leave(replacedBy other: CInt? = nil) {
        BackgroundAcceptor.endWatch(queryWatch.exchange(0, ordering: .sequentiallyConsistent))
        for listener in state.withLock({ $0.coldState.listeners }) { listener.object?.drop(self) }
        close(PortError(.deadName), shutsDown: false)
        descriptor.leaveConnection(replacedBy: other)
        receiver.state.withLock { $0.giveUp() }
    }

    /// Sends a message when there is room, at the right's end. Never waits.
    func sendLater(_ message: MachMessage) throws(PortError) {
        try checkProcess()
        let encoded: OutgoingMessage
        switch try message.encodedOrFull() {
        case .success(let message): encoded = message
        case .failure: throw PortError(.sendTimedOut)
        }
        var transmission = try begin(message, encoded, answering: 0)
        let token = transmission.asks
        do throws(PortError) {
            try sender.reply(&transmission, settling: 0, over: self)
        } catch {
            forget(token: token)
            throw error
        }
        didSend(token: token)
        state.withLock { $0.mustFlush = true }
        closeIfFlushed()
    }

    /// Once the backlog was sent, it does not need the connection.
    func closeIfFlushed() {
        let isDone = state.withLock { state in
            guard state.mustFlush, sender.backlog.isIdle else { return false }
            state.mustFlush = false
            return !isPortsEnd && state.isDone
        }
        if isDone { close(PortError(.deadName)) }
    }
}

// MARK: - The new owner

/// The process that has a port since that has moved; it may move again.
final class OwnerRecord: Sendable {
    let identity: Mutex<PeerIdentity>

    init(_ identity: PeerIdentity) { self.identity = Mutex(identity) }
}

extension SocketConnection {
    /// Whether a packet has come from a peer that has not ended, as the kernel knows it now.
    var hasArrival: Bool {
        let events = (try? sysPoll(descriptor.rawValue, [.readable, .peerClosed], until: .distantPast)) ?? []
        return events.contains(.readable) && events.isDisjoint(with: [.peerClosed, .hangUp, .error])
    }

    /// The next packet says which process the port's owner is.
    func passCredentials(_ isOn: Bool) { try? sysPassCredentials(descriptor.rawValue, isOn) }

    /// A packet of the port's new owner has come. The kernel has checked what that says of itself; a process that it
    /// does not name has no number.
    func ownerDidChange(to origin: PacketOrigin?) {
        passCredentials(false)
        let old = firstPeer
        // The kernel names the process 0 where it does not know it: then its user is not vouched for, either.
        let known = origin.flatMap { $0.process == 0 ? nil : $0 }
        let identity = PeerIdentity(
            processID: known?.process ?? 0, userID: known?.user ?? old.userID, groupID: known?.group ?? old.groupID)
        newOwner.object(orSet: OwnerRecord(identity)).identity.withLock { $0 = identity }
    }
}

// MARK: - Requests to move

extension SocketConnection {
    var isAskingForMove: Bool { asksForMove.load(ordering: .relaxed) }

    private func noteAskingForMove() { asksForMove.store(true, ordering: .relaxed) }

    /// A process asks that the port be handed over.
    func beginHandOver(of port: any MessageSink, _ question: HandOverQuestion) {
        noteObserver(port)
        noteAskingForMove()
        // A policy may admit other users; it does not let them take the port.
        if !sysIsOwnUser(peer.userID) || !port.beginHandOver(question, over: self) { answerHandOver(.notAllowed) }
    }

    /// Never waits.
    func answerHandOver(_ answer: HandOverAnswer) { enqueue(answer.packet) }
}

// MARK: - Receive rights in messages

extension PortError.StaticReason {
    fileprivate static let mustWait = Self(
        "a move to another process waits for its receiver; send it with a time limit")
}

extension SocketConnection {
    /// Begins to move the ports whose receive rights a message has.
    ///
    /// - Throws: `sendTimedOut` when one of them is still busy at the deadline; `notTransferable`, also where the caller may
    ///   not wait; `invalidPort`; why what it needs cannot be made. All of them go on here then.
    func beginMoves(
        of message: borrowing MachMessage, until deadline: inout SendDeadline
    ) throws(PortError) -> PortMoves {
        if !deadline.mayWait { throw PortError(.notTransferable, subject: .reason(.mustWait)) }
        let instant = deadline.fix()
        while true {
            if let moves = try beginMovesIfQuiet(of: message, besides: .current, until: instant) { return moves }
            if instant <= .now { throw PortError(.sendTimedOut) }
            ThreadEvent().wait(until: min(instant, .after(Tuning.timeBetweenFreezes)))
        }
    }

    /// The same in a task, which blocks no thread between two attempts.
    nonisolated(nonsending) func beginMoves(
        of message: MachMessage, waiting wait: TaskWaiter
    ) async throws(PortError) -> PortMoves? {
        if !message.parts.hasReceiveRight { return nil }
        if !wait.mayWait { throw PortError(.notTransferable, subject: .reason(.mustWait)) }
        while true {
            if let moves = try beginMovesIfQuiet(of: message, besides: nil, until: wait.deadline) { return moves }
            if !wait.mayWait { throw PortError(.sendTimedOut) }
            let alarm = AlarmClock.shared.set(for: .after(Tuning.timeBetweenFreezes)) { wait.wake() }
            defer { AlarmClock.shared.stop(alarm) }
            try await wait.wait()
        }
    }

    /// - Returns: nil when one of the ports is not quiet: then all go on.
    private func beginMovesIfQuiet(
        of message: borrowing MachMessage, besides loop: ThreadRunLoop?, until deadline: MonotonicInstant
    ) throws(PortError) -> PortMoves? {
        let moves = PortMoves()
        for port in message.receiveRights {
            let move = try port.beginMove(to: portAddress, with: moves.offer, besides: loop, until: deadline)
            guard let move else {
                _ = moves.end(because: PortError(.sendTimedOut))
                return nil
            }
            moves.add(move)
        }
        return moves
    }
}

/// The ports that one message moves: its receiver takes all of them, or none. They stay where this is released before.
final class PortMoves: Sendable {
    private let moves = Mutex<[any PortMove]>([])
    /// Over that of the first port the receiver answers for all of them.
    private let firstOffer = SetOnceReference<PortOffer>()

    var offer: PortOffer? { firstOffer.object }
    /// What travels.
    var descriptors: [SharedDescriptor] { moves.withLock { $0.map(\.descriptor) } }

    deinit { _ = end(because: PortError(.notTransferable)) }

    func add(_ move: any PortMove) {
        firstOffer.set(move.offer)
        moves.withLock { $0.append(move) }
    }

    /// Waits until the receiver has taken the ports. Where it is busy, another thread of its process receives the message.
    ///
    /// - Throws: why it has not; `sendTimedOut`.
    func waitUntilTaken(until deadline: MonotonicInstant, over connection: SocketConnection) throws(PortError) {
        guard let offer else { return }
        closeDescriptors()
        var limit = min(deadline, .after(Tuning.timeBeforeKnock))
        while true {
            _ = try PortError.converting(sysPoll(offer.rawValue, .readable, until: limit))
            if let outcome = offer.poll() { return try settle(outcome) }
            if deadline <= .now { throw PortError(.sendTimedOut) }
            connection.sender.knock(over: connection)
            limit = deadline
        }
    }

    /// The same in a task, which blocks no thread.
    nonisolated(nonsending) func waitUntilTaken(
        waiting wait: TaskWaiter, over connection: SocketConnection
    ) async throws(PortError) {
        guard let offer else { return }
        closeDescriptors()
        let alarm = AlarmClock.shared.set(for: .after(Tuning.timeBeforeKnock)) {
            connection.sender.knock(over: connection)
        }
        defer { AlarmClock.shared.stop(alarm) }
        while true {
            if let outcome = offer.poll() { return try settle(outcome) }
            let watches = try IOThread.arrivals()
            let key = try PortError.converting(watches.add(offer.rawValue, .readable, once: true) { wait.wake() })
            defer { watches.remove(key) }
            try await wait.wait()
        }
    }

    /// Ends the moves: takes the ports back because of an error, unless the receiver has taken them.
    ///
    /// - Returns: whether it has.
    func end(because error: PortError) -> Bool {
        let moves = moves.withLock { $0 }
        guard let outcome = offer?.withdraw(error), case .taken = outcome else {
            for move in moves { move.cancel() }
            return false
        }
        for move in moves { move.commit() }
        return true
    }

    /// The kernel has what travels: from now on only the receiver's end holds it open.
    private func closeDescriptors() {
        for move in moves.withLock({ $0 }) { _ = move.descriptor.take() }
    }

    private func settle(_ outcome: PortOffer.Outcome) throws(PortError) {
        if case .stays(let error) = outcome { throw error }
        for move in moves.withLock({ $0 }) { move.commit() }
    }
}
