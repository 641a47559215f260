// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A port moves to another process. Its owner freezes it: nothing is taken out of its queue or its sockets, and senders
// wait. When the handlers under way have returned, and the replies that are owed for messages which were taken are with
// the kernel, what is left is packed: the queue, the connections, the listener. It travels inside one descriptor, with
// one message. Until the receiver has taken it (`PortTransfer`), the port can be thawed, and goes on.
//
//   open ──freeze──▶ frozen ──pack──▶ packed ──commit──▶ moved
//                      ╰──────thaw──────╰──────▶ open
//
// A port that does not become quiet is frozen for a moment only, again and again: its clients are served in between.
//
// Afterwards this process has rights to a port of another one: what is sent to this object goes over a connection that
// moved with the port. The answers to requests of this process that were in the queue come back over it.

import PortSystem
import RunLoopCore
import Synchronization

extension PortError.StaticReason {
    static let beingMoved = Self("it is being moved already")
    fileprivate static let intercepts = Self("this library handles some of its messages, in this process")
    fileprivate static let isNeeded = Self("something in this process ends with it")
    fileprivate static let toItself = Self("the message is to the port itself")
}

extension LocalPort {
    /// Freezes the port for a moment, and packs it when it is quiet. A handler that the loop has called is not waited for.
    ///
    /// - Parameters:
    ///   - offer: over what the receiver answers, when the message moves another port, too.
    ///   - loop: this thread's, if the caller is a thread.
    ///   - deadline: until when to wait at most.
    /// - Returns: the port on its way; nil when it was not quiet in time, and goes on.
    /// - Throws: `invalidPort`; `notTransferable`; why what it needs cannot be made. The port goes on then.
    func beginMove(
        with offer: PortOffer?, besides loop: ThreadRunLoop?, until deadline: MonotonicInstant
    ) throws(PortError) -> LocalPortMove? {
        let frozen = try FrozenPort(self)
        let limit = min(deadline, .after(Tuning.longestFreeze))
        var pause = Tuning.firstMovePause
        while try !frozen.isQuiet(besides: loop) {
            if limit <= .now { return nil }
            ThreadEvent().wait(until: min(limit, .after(pause)))
            pause = pause * 2
        }
        return try frozen.pack(with: offer)
    }

    /// - Throws: `notTransferable` when the port would be in a queue of its own, where no process would read it.
    func checkMove(to target: PortAddress?) throws(PortError) {
        guard let target, state.withLock({ $0.liveAddress }) == target else { return }
        throw PortError(.notTransferable, subject: .reason(.toItself)).at(label)
    }

    /// Whether it is moving, and receives nothing.
    var isFrozen: Bool { !isInherited && state.withLock { $0.mailbox.isFrozen } }

    fileprivate func freeze() throws(PortError) {
        let result = state.withLock { state -> PortError? in
            if state.mailbox.isDead { return PortError(.invalidPort) }
            if state.mailbox.isFrozen { return PortError(.notTransferable, subject: .reason(.beingMoved)) }
            if state.coldState.endings.values.contains(where: { !$0.mayMove && $0.attachment == nil }) {
                return PortError(.notTransferable, subject: .reason(.isNeeded))
            }
            state.mailbox.freeze()
            return nil
        }
        if let result { throw result.at(label) }
    }

    fileprivate func thaw() {
        let sources = state.withLock { state -> SourceList? in
            if state.mailbox.isDead { return nil }
            state.mailbox.thaw()
            return state.sources
        }
        guard let sources else { return }
        changeSenders { $0.senders.unpack() }
        change { $0.admitSenders() }
        sources.ring()
        while let task = state.withLock({ $0.nextTask() }) { task.wake() }
    }

    /// The port has left: what is sent here from now on is sent to the successor.
    fileprivate func leave(
        for port: RemotePort, packedCount: Int, clients: [SocketConnection], _ attachments: [any PortAttachment],
        replacedBy other: CInt
    ) {
        let successor = SendRight(port)
        let left = state.withLock { state -> MoveCleanup? in
            guard let rest = state.mailbox.leave() else { return nil }
            let (sources, coldState) = (state.sources, state.removeColdState())
            state.sources = SourceList()
            if let doorbell = coldState.value.doorbell { state.coldState.doorbell = doorbell }
            (state.coldState.address, state.coldState.oldAddresses) =
                (coldState.value.address, coldState.value.oldAddresses)
            (state.coldState.hasLeft, state.coldState.successor) = (true, successor)
            return MoveCleanup(
                sources: sources, coldState: coldState, messages: rest.messages, senders: rest.senders,
                notices: rest.notices, others: rest.others)
        }
        guard let left else { return }
        let coldState = left.coldState
        for address in coldState.value.addresses { RightsTable.shared.didEnd(self, at: address) }
        // Their clients get the answers from the successor: what is released here settles nothing.
        let movedClients = Set(clients.map { ObjectIdentifier($0) })
        for message in left.messages.prefix(packedCount) {
            guard let target = message.replyTarget, let receiver = target.receiver as? RemoteReplyReceiver else {
                continue
            }
            if movedClients.contains(ObjectIdentifier(receiver.connection)) { target.disarm() }
        }
        for attachment in attachments { attachment.leave() }
        // Names that the port has got since it was packed.
        for ending in coldState.value.endings.values {
            if let other = ending.attachment, !attachments.contains(where: { $0 === other }) { ending.call() }
        }
        coldState.value.sockets?.leave(moved: clients, replacedBy: other)
        coldState.value.taskReceiver?.source.invalidate()
        for task in coldState.value.waitingTasks { task.wake() }
        // Replies, which were queued meanwhile. What waits for room goes with its sender.
        for message in left.messages.dropFirst(packedCount) { passOn(message) }
        for sender in left.senders { sender.wake() }
        for notice in coldState.value.deathNotices {
            let passed = DeathNotice(loop: notice.loop, mode: notice.mode) { notice.notify($0) }
            _ = try? port.awaitDeath(passed)
        }
        for notice in left.notices { notice.notify(.possible) }
        for notice in coldState.value.senderNotices { notice.cancel() }
        // Last: a program may end when its loop has nothing more to do.
        for source in left.sources.all {
            source.ring()
            source.invalidate()
        }
        withExtendedLifetime(state.withLock { $0.removeUnusedSuccessor() }) {}  // released without the lock
    }

    private struct MoveCleanup {
        var sources: SourceList
        var coldState: ColdStorage<ColdState>
        var messages: [MachMessage]
        var senders: [BlockedSender]
        var notices: [LoopNotification<SendPossibility>]
        /// Released without the lock.
        var others: ([BlockedSender], [EarlyQuestion])
    }
}

/// A port that receives nothing until it is packed, or until this is released.
private final class FrozenPort: Sendable {
    let port: LocalPort  // immutable
    let address: PortAddress  // immutable
    let sockets: PortSockets  // immutable
    /// Whether the port was packed, and is thawed by that.
    private let isPacked = Atomic<Bool>(false)
    /// The tokens under which the messages in the queue ask, by their connections. Nothing leaves the queue meanwhile.
    private let tokens: [ObjectIdentifier: Set<UInt64>]  // immutable

    init(_ port: LocalPort) throws(PortError) {
        try port.checkProcess()
        if port.mayServeSenders { throw PortError(.notTransferable, subject: .reason(.intercepts)).at(port.label) }
        // What is sent to the port after the move is received by this thread; without it the port stays.
        _ = try IOThread.loop()
        port.willMove()
        let address = try port.address()
        let sockets = try port.openSockets()
        try port.freeze()
        guard sockets.freeze() else {
            port.thaw()
            throw PortError(.invalidPort).at(port.label)
        }
        (self.port, self.address, self.sockets) = (port, address, sockets)
        var tokens: [ObjectIdentifier: Set<UInt64>] = [:]
        for message in port.state.withLock({ $0.mailbox.messages() }) {
            guard let receiver = message.replyTarget?.receiver as? RemoteReplyReceiver else { continue }
            tokens[ObjectIdentifier(receiver.connection), default: []].insert(receiver.token)
        }
        self.tokens = tokens
    }

    deinit {
        if isPacked.load(ordering: .acquiring) { return }
        sockets.thaw()
        port.thaw()
    }

    /// Whether no handler is under way, but those of a loop, and nothing is owed but the answers to messages in the queue.
    ///
    /// - Throws: `invalidPort` when the port has ended since.
    func isQuiet(besides loop: ThreadRunLoop?) throws(PortError) -> Bool {
        let (others, isDead) = port.state.withLock { state in
            // A client that a policy of the program's admits at this moment goes along, too.
            let others =
                state.senders.isAccepting || state.ownership.handlers.all.contains { unsafe $0.loop !== loop }
            return (others, state.mailbox.isDead)
        }
        if isDead { throw PortError(.invalidPort).at(port.label) }
        if others { return false }
        guard sockets.clients.allSatisfy({ $0.isQuiet(besides: tokens[ObjectIdentifier($0)] ?? []) }) else {
            return false
        }
        return sockets.clients.allSatisfy { $0.windUpRings() }
    }

    func pack(with offer: PortOffer?) throws(PortError) -> LocalPortMove {
        var packing = try PortSnapshotWriter(port, address, sockets)
        do throws(PortError) {
            for message in port.state.withLock({ $0.mailbox.messages() }) { try packing.add(message) }
            let move = try packing.finish(port, sockets, with: offer)
            isPacked.store(true, ordering: .releasing)
            if port.noteMove(move) { return move }
            // It has ended since.
            move.cancel()
            throw PortError(.invalidPort).at(port.label)
        } catch {
            packing.giveUp()
            throw error
        }
    }
}

/// A port that was packed.
final class LocalPortMove: PortMove {
    let descriptor: SharedDescriptor  // immutable
    let offer: PortOffer  // immutable
    private let port: LocalPort  // immutable
    private let sockets: PortSockets  // immutable
    private let successor: RemotePort  // immutable
    private let clients: [SocketConnection]  // immutable
    private let messageCount: Int  // immutable
    /// The requests of this process whose messages are in the queue.
    private let tokens: [UInt64]  // immutable
    private let attachments: [any PortAttachment]  // immutable
    private let isSettled = Atomic<Bool>(false)

    init(
        _ port: LocalPort, _ sockets: PortSockets, _ descriptor: SharedDescriptor, _ offer: PortOffer,
        _ successor: RemotePort, _ clients: [SocketConnection], _ messageCount: Int, _ tokens: [UInt64],
        _ attachments: [any PortAttachment]
    ) {
        (self.offer, self.attachments) = (offer, attachments)
        (self.port, self.sockets, self.descriptor, self.successor) = (port, sockets, descriptor, successor)
        (self.clients, self.messageCount, self.tokens) = (clients, messageCount, tokens)
    }

    func commit() {
        if isSettled.exchange(true, ordering: .acquiringAndReleasing) { return }
        port.leave(
            for: successor, packedCount: messageCount, clients: clients, attachments, replacedBy: offer.rawValue)
        guard let connection = successor.connection else { return }
        for token in tokens { connection.didSend(token: token) }
    }

    func cancel() {
        if isSettled.exchange(true, ordering: .acquiringAndReleasing) { return }
        for token in tokens { successor.connection?.forget(token: token) }
        port.forgetMove()
        sockets.thaw()
        port.thaw()
    }
}

extension LocalPort {
    /// The port was packed: until the move is settled, the port retains it.
    ///
    /// - Returns: false when the port has ended.
    fileprivate func noteMove(_ move: LocalPortMove) -> Bool {
        state.withLock { state in
            if state.mailbox.isDead { return false }
            state.coldState.move = move
            return true
        }
    }

    fileprivate func forgetMove() {
        let move = state.withLock { $0.hasColdState ? $0.coldState.move.take() : nil }
        withExtendedLifetime(move) {}  // released without the lock
    }

    /// A port that is to end while it is on its way: either its receiver has taken it, or it does not get it.
    ///
    /// - Returns: whether it has left.
    func endMove() -> Bool {
        guard let move = state.withLock({ $0.hasColdState ? $0.coldState.move : nil }) else { return false }
        guard case .taken = move.offer.withdraw(PortError(.invalidPort)) else { return false }
        move.commit()
        return true
    }
}
