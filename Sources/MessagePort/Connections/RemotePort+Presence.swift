// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// What this process retains so that a port of another process counts its rights (Docs/Decisions/0041): the ends that came
// with them; and for rights that came without one, but are connected, the end of a pipe of its own, which travels with
// those that it passes on.

/// The ends of the pipes of one port.
struct RemotePresence: Sendable {
    var client = ClientPresence<SharedDescriptor>.none
    /// The ends that are retained, by their pipes: rights with ends of the same pipe share one.
    private var known: [PipeIdentity: WeakReference<SharedDescriptor>] = [:]
    /// The last ends that came, the newest last. They are retained as long as there is any right to the port: of equal
    /// rights, of which one may be worthless, a program's set retains one.
    private var kept: [(end: SharedDescriptor, sender: PeerID?)] = []

    /// The newest end.
    var newest: SharedDescriptor? { kept.last?.end }

    /// Retains an end.
    ///
    /// - Returns: the end that the right gets: an earlier one of the same pipe, if the kernel says that it is. Otherwise
    ///   a sender could have another's end dropped. And what is to be released without a lock.
    mutating func add(_ new: ReceivedEnd) -> (end: SharedDescriptor, released: [SharedDescriptor]) {
        var released: [SharedDescriptor] = []
        let end = shared(new, &released)
        if let index = kept.firstIndex(where: { $0.end === end }) {
            kept.append(kept.remove(at: index))
            return (end, released)
        }
        kept.append((end, new.sender))
        if kept.count > Tuning.keptEnds { released.append(kept.remove(at: indexOfSurplus).end) }
        return (end, released)
    }

    private mutating func shared(_ new: ReceivedEnd, _ released: inout [SharedDescriptor]) -> SharedDescriptor {
        if !new.pipe.isCertain { return new.end }
        if let end = known[new.pipe]?.object {
            if PresencePipe.areSame(end, new.end) { return end }
            released.append(end)
            return new.end
        }
        for (pipe, reference) in known {
            if let end = reference.object { released.append(end) } else { known[pipe] = nil }
        }
        known[new.pipe] = WeakReference(new.end)
        return new.end
    }

    /// The oldest end of the process that sent the most; of several, the one whose ends came last. So a process displaces
    /// an end of another only after that one has sent as many, and new processes displace none of earlier ones.
    private var indexOfSurplus: Int {
        var (counts, oldest): ([PeerID?: Int], [PeerID?: Int]) = ([:], [:])
        for (index, element) in kept.enumerated() {
            counts[element.sender, default: 0] += 1
            if oldest[element.sender] == nil { oldest[element.sender] = index }
        }
        let most = counts.values.max()
        return oldest.filter { counts[$0.key] == most }.values.max() ?? 0
    }
}

extension RemotePort {
    /// What an attempt to announce a pipe came to.
    private enum PresenceOutcome {
        /// The port finds it. The end travels.
        case done(SharedDescriptor)
        /// The connection has no room for it.
        case full
        /// The port is gone.
        case dead
    }

    package func makePresence(with end: ReceivedEnd?) -> (any SenderPresence)? {
        guard let end else { return nil }
        if isInherited { return end.end }
        let (shared, released) = presence.withLock { $0.add(end) }
        withExtendedLifetime(released) {}  // without the lock
        return shared
    }

    package func export(_ presence: (any SenderPresence)?) throws(PortError) -> SharedDescriptor? {
        if let end = presence as? SharedDescriptor { return end }
        if isInherited { return nil }
        guard let connection else { return self.presence.withLock { $0.newest } }
        // Done before the message was encoded, unless the connection is new since.
        switch try announce(over: connection) {
        case .done(let end): return end
        case .full: throw PortError(.sendTimedOut)
        // An end that came may still count for another right: it is not known to be worthless.
        case .dead: return self.presence.withLock { $0.newest }
        }
    }

    package var exportsEnds: Bool {
        if isInherited { return false }
        return connection != nil || presence.withLock { $0.newest != nil }
    }

    /// Before a right that came without an end travels on: sends the port the read end of a pipe, over the connection
    /// that counts for the right so far. The port finds it before it finds that the connection has ended.
    private func announce(over connection: SocketConnection) throws(PortError) -> PresenceOutcome {
        var made: PresencePipe?  // released without the lock
        defer { withExtendedLifetime(made) {} }
        // With the lock the packet is sent once.
        return try presence.withLock { (presence) throws(PortError) in
            if let end = presence.client.end { return .done(end) }
            let pipe = try PortError.converting(PresencePipe())
            made = pipe
            let outcome: SendOutcome
            do throws(SystemError) {
                outcome = try sysSendPacket(
                    connection.descriptor.rawValue, head: PacketHeader.presence.words, body: [],
                    descriptors: [pipe.reading])
            } catch {
                throw PortError(error)
            }
            switch outcome {
            case .sent: return .done(presence.client.didAnnounce(pipe.writing))
            case .wouldBlock: return .full
            case .peerClosed: return .dead
            }
        }
    }

    /// - Returns: false when the connection has no room for it.
    fileprivate func hasAnnounced(over connection: SocketConnection) throws(PortError) -> Bool {
        if case .full = try announce(over: connection) { false } else { true }
    }
}

// MARK: - Messages

/// A connection that has no room for the announcement of a right.
struct BlockedConnection: Error {
    let connection: SocketConnection
}

extension MachMessage {
    /// Encodes the message for another process. Announces first what is to count its rights that came without an end; a
    /// message without rights needs nothing.
    ///
    /// - Throws: `sendTimedOut` when the connection to one of the ports has no room until the deadline;
    ///   `descriptorLimit`, `descriptorsInFlight`, `systemCallFailed`; those of the encoding.
    func encoded(
        until deadline: inout SendDeadline, moving moves: PortMoves? = nil, lending lender: MemoryLender? = nil
    ) throws(PortError) -> OutgoingMessage {
        if let plain = try OutgoingMessage(plain: self) { return plain }
        while true {
            switch try encodedOrFull(moving: moves, lending: lender) {
            case .success(let message): return message
            case .failure(let full):
                let instant = deadline.fix()
                if instant <= .now { throw PortError(.sendTimedOut) }
                try PortError.converting(full.connection.sender.channel.waitForRoom(until: instant))
            }
        }
    }

    /// The same in a task, which blocks no thread.
    nonisolated(nonsending) func encoded(
        waiting wait: TaskWaiter, moving moves: PortMoves? = nil, lending lender: MemoryLender? = nil
    ) async throws(PortError) -> OutgoingMessage {
        while true {
            switch try encodedOrFull(moving: moves, lending: lender) {
            case .success(let message): return message
            case .failure(let full): try await full.connection.waitForRoom(wait)
            }
        }
    }

    /// The same without waiting.
    ///
    /// - Returns: a connection that has no room, or the message.
    func encodedOrFull(
        moving moves: PortMoves? = nil, lending lender: MemoryLender? = nil
    ) throws(PortError) -> Result<OutgoingMessage, BlockedConnection> {
        while true {
            if let full = try announceRights() { return .failure(BlockedConnection(connection: full)) }
            do throws(PortError) {
                return .success(try OutgoingMessage(self, moving: moves?.descriptors ?? [], lending: lender))
            } catch {
                // Another thread has connected a right since: it is to be announced, too.
                guard error.code == .sendTimedOut else { throw error }
            }
        }
    }

    /// Announces what is to count the rights that came without an end. Never waits.
    ///
    /// - Returns: a connection that has no room; nil when all is announced.
    func announceRights() throws(PortError) -> SocketConnection? {
        if rightCount == 0 { return nil }
        for (port, connection) in uncountedPorts where try !port.hasAnnounced(over: connection) { return connection }
        return nil
    }

    /// The ports of other processes that are connected, and to which there is a right without an end.
    private var uncountedPorts: [(RemotePort, SocketConnection)] {
        rightsToSend.compactMap { right in
            guard !right.hasEnd, let port = right.destination as? RemotePort, !port.isInherited else { return nil }
            return port.connection.map { (port, $0) }
        }
    }

    /// The rights that travel, the reply port first.
    private var rightsToSend: [SendRight] {
        let others = parts.list.compactMap { part in if case .right(let right) = part { right } else { nil } }
        return ((replyPort.map { [$0] } ?? []) + others).map { right in
            // Why a name has no owner is found when the message is encoded.
            (try? right.destination.rightToSend()) ?? right
        }
    }

    /// How many ends will travel with the rights once all are announced, as `OutgoingMessage` shares them.
    var endCount: Int {
        if rightCount == 0 { return 0 }
        var (count, last): (Int, [ObjectIdentifier: ObjectIdentifier]) = (0, [:])
        for (index, right) in rightsToSend.enumerated() {
            guard let end = right.endIdentity else { continue }
            let port = ObjectIdentifier(right.destination)
            if last[port] == end, index > 0 || replyPort == nil { continue }
            last[port] = end
            count += 1
        }
        return count
    }
}

// MARK: - Replies

/// A reply that waits for room in the connection of another port. Until its end it is unflushed, and its receiver's
/// account has what it takes.
final class PendingReply: Sendable {
    let message: MachMessage  // immutable
    private let notice: LoopNotification<SendPossibility>  // immutable
    private let charge: PeerCharge?  // immutable
    private let unflushed = UnflushedReplies.current  // immutable

    init(_ message: MachMessage, _ notice: LoopNotification<SendPossibility>, _ charge: consuming PeerCharge?) {
        (self.message, self.notice) = (message, notice)
        self.charge = charge
        unflushed.enter()
    }

    deinit {
        notice.cancel()
        unflushed.leave()
    }
}

extension SocketConnection {
    /// A reply never waits. One with a right that is to be announced over a connection without room is sent when that
    /// has room, and is unflushed until then. It ends with this connection, and when its request is abandoned.
    ///
    /// - Throws: ``PortError`` when the reply exceeds a limit, `sendTimedOut` when too many wait, or room cannot be
    ///   watched: the request is not settled.
    func reply(_ message: MachMessage, answering token: UInt64, after full: SocketConnection) throws(PortError) {
        var cost = try OutgoingMessage.check(message)
        cost.descriptors += 1  // what watches for room
        let notice = LoopNotification<SendPossibility>(on: try IOThread.loop(), in: .default) { [self] _ in
            sendPendingReply(to: token)
        }
        let pending = PendingReply(message, notice, quotas(of: sink)?.charge(owner, forUnread: cost))
        try state.withLock { (state) throws(PortError) in
            if state.life.failure != nil { throw PortError(.deadName) }
            if state.coldState.pendingReplies.count >= Tuning.pendingReplies { throw PortError(.sendTimedOut) }
            state.coldState.pendingReplies[token] = pending
        }
        do throws(PortError) {
            try full.watch(notice, endingWith: self)
        } catch {
            // Unless the connection has ended since, and the reply with it.
            if removePendingReply(to: token) != nil { throw error }
        }
    }

    func hasPendingReply(to token: UInt64) -> Bool { state.withLock { $0.coldState.pendingReplies[token] != nil } }

    /// Removes a reply, which the caller releases without a lock.
    private func removePendingReply(to token: UInt64) -> PendingReply? {
        state.withLock { $0.coldState.pendingReplies.removeValue(forKey: token) }
    }

    /// There is room, or the requester is gone.
    private func sendPendingReply(to token: UInt64) {
        guard let pending = removePendingReply(to: token) else { return }
        defer { withExtendedLifetime(pending) {} }  // unflushed until the connection has it
        // A port that has ended does not find the end of its connections.
        if hasHungUp { return didSettleReply(to: token) }
        do throws(PortError) {
            try reply(pending.message, answering: token)
        } catch {
            // For its sender it is on its way.
            let reason: PortError.Code? =
                switch error.code {
                case .descriptorLimit, .descriptorsInFlight: .descriptorsLost
                case .messageTooLarge, .tooManyDescriptors: .messageTooLarge
                default: nil
                }
            dropReply(to: token, because: reason)
        }
    }

    /// The request was abandoned.
    func dropPendingReply(to token: UInt64) {
        let pending = removePendingReply(to: token)
        if pending != nil { dropReply(to: token) }
    }

    /// Whether the peer's end is closed, as the kernel knows it.
    var hasHungUp: Bool {
        let events = try? sysPoll(descriptor.rawValue, [], until: .distantPast)
        return !(events ?? []).isDisjoint(with: [.hangUp, .error])
    }
}
