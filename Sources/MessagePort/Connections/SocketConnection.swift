// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// One connection between a right in one process and its port in another. Both ends are alike: each sends messages, asks
// for replies under tokens of its own, and answers the other's tokens. They differ in where a message that answers
// nothing goes: at the port's end into the port's queue; at the right's end it breaks the format.
//
// Replies need no address of their own: they come back over the connection that brought the request, so a request costs
// one packet each way. When the connection ends, every request that awaits a reply over it fails.
//
// Sending and receiving each have their own lock and may run at the same time. See Docs/LockOrder.md.

package import PortSystem
import RunLoopCore
import Synchronization

package final class SocketConnection: Sendable {
    /// Which part of the connection is still in use.
    enum Lifecycle: Sendable {
        /// Messages and replies.
        case open
        /// The right or the port at this end is gone: the connection ends when nothing needs it.
        case withoutOwnSide
        /// The port at the other end takes no more messages; replies may still come.
        case withoutOtherPort
        case withoutBoth
        /// None, and why the connection ended.
        indirect case closed(PortError)

        mutating func ownSideDidEnd() {
            switch self {
            case .open: self = .withoutOwnSide
            case .withoutOtherPort: self = .withoutBoth
            case .withoutOwnSide, .withoutBoth, .closed: break
            }
        }

        mutating func otherPortDidEnd() {
            switch self {
            case .open: self = .withoutOtherPort
            case .withoutOwnSide: self = .withoutBoth
            case .withoutOtherPort, .withoutBoth, .closed: break
            }
        }

        var hasLostOwnSide: Bool {
            switch self {
            case .withoutOwnSide, .withoutBoth: true
            case .open, .withoutOtherPort, .closed: false
            }
        }

        var hasLostOtherPort: Bool {
            switch self {
            case .withoutOtherPort, .withoutBoth: true
            case .open, .withoutOwnSide, .closed: false
            }
        }

        /// Why the connection ended; nil while it has not.
        var failure: PortError? { if case .closed(let failure) = self { failure } else { nil } }
    }

    struct State {
        var life = Lifecycle.open
        var requests = RequestTable()
        /// Receives while a loop runs, for requests and death notices; made when first needed.
        var source: RunLoopSource?
        private var coldStorage = ColdStorage<ColdState>()
        /// What the peer uses this end for.
        var use = PeerRole.nothing
        /// Whether the backlog is to be sent, also when the right is gone.
        var mustFlush = false

        var coldState: ColdState {
            @inline(__always) _read { yield coldStorage.value }
            @inline(__always) _modify { yield &coldStorage.value }
        }

        /// Whether something at this end waits for a reply, for the other port's end, or for room.
        var isNeeded: Bool { requests.awaitsReply || !coldState.deathNotices.isEmpty || mustFlush }

        /// Whether nothing at the right's end needs the connection any more.
        var isDone: Bool { life.hasLostOwnSide && !isNeeded }

        /// Notes why the port at the other end is gone, unless that is known.
        mutating func noteEnd(_ reason: PortEndReason?) {
            if let reason, coldState.endReason == nil { coldState.endReason = reason }
        }

        mutating func removeDeathNotices() -> [DeathNotice] {
            if coldStorage.isBlank { return [] }
            defer { coldState.deathNotices = [] }
            return coldState.deathNotices
        }

        /// Removes what the connection retains until it is closed.
        mutating func removeRetained() -> (SocketConnection?, [UInt64: PendingReply]) {
            if coldStorage.isBlank { return (nil, [:]) }
            defer { (coldState.own, coldState.pendingReplies) = (nil, [:]) }
            return (coldState.own, coldState.pendingReplies)
        }

        /// Notes that the peer sends messages.
        ///
        /// - Returns: whether it only observed before: the port has one sender more.
        mutating func noteMessages() -> Bool {
            defer { use = .messages }
            return use == .observing
        }
    }

    /// State that only some connections have.
    struct ColdState: ColdValue, ~Copyable {
        static let blank = ColdBox<ColdState>()
        var probes = ProbeBacklog()
        var deathNotices: [DeathNotice] = []
        /// Why the port at the other end is gone, if that is known.
        var endReason: PortEndReason?
        /// The connection itself: retains it while only death notices need it.
        var own: SocketConnection?
        /// The replies that wait for room in connections of other ports, by their tokens.
        var pendingReplies: [UInt64: PendingReply] = [:]
        /// Other ports that receive from the connection because they await replies over it.
        var listeners: [WeakReference<PortSockets>] = []
    }

    /// What a peer does over the connection: one that only observes does not count as a sender of the port.
    enum PeerRole: Sendable {
        case nothing
        case observing
        case messages
    }

    /// The process at the other end, or that has made the connection, as the kernel knew it then.
    let firstPeer: PeerIdentity  // immutable
    /// The process that has the port since that has moved, at the right's end.
    let newOwner = SetOnceReference<OwnerRecord>()
    /// Whether the peer had connected before the port was this process's, and does not know that it has moved.
    let mustAnnounceMove = Atomic<Bool>(false)
    /// Whether the peer asks that the port be handed over, over this connection, which is for that alone.
    let asksForMove = Atomic<Bool>(false)
    /// Whether this end belongs to a port, not to a right.
    let isPortsEnd: Bool  // immutable
    /// Whether the connection is closed: `state.life` has the reason. Written under the lock of `state`, read without.
    private let hasFailed = Atomic<Bool>(false)
    /// Whether the peer has asked about the port.
    let hasObserved = Atomic<Bool>(false)
    /// Whether the peer has sent the read end of a pipe.
    let hasAnnounced = Atomic<Bool>(false)
    /// The process in whose account the connection is.
    let owner: PeerID  // immutable
    let descriptor: SharedDescriptor  // immutable
    /// Where the port at the other end can be asked; nil at the port's end, and where that is not known.
    let portAddress: PortAddress?  // immutable
    // The other files of this type use these three; other types call methods.
    let state = Mutex(State())
    let receiver = PacketReceiver()
    let sender: PacketSender
    /// The port that this end belongs to, retained until it ends; nil at the right's end.
    private let port: Mutex<(any MessageSink)?>
    /// The accounts of the port that this end belongs to: set when they are first needed.
    private let knownQuotas = SetOnceReference<PeerQuotas>()
    /// The key of the I/O thread's watch for a query of the peer; zero for none.
    let queryWatch = Atomic<UInt64>(0)
    /// What is lent over the connection, in both directions; made when it is first needed.
    let sharedMemory = SetOnceReference<ConnectionMemory>()
    private let forkGuard = ForkGuard()  // immutable

    /// Takes over a connected socket, whose messages are for the port; at the right's end that is nil. Without a `peer`
    /// the kernel is asked for the process at the other end; for a socket pair it names its creator. Without `way` the
    /// kernel finds that process by the socket, too, when it is to be opened.
    ///
    /// - Throws: ``PortError`` when the kernel does not name the process at the other end.
    init(
        _ descriptor: SharedDescriptor, port: (any MessageSink)?, at portAddress: PortAddress? = nil,
        peer: PeerIdentity? = nil, opened way: ConnectionTable.Peer? = nil
    ) throws(PortError) {
        self.descriptor = descriptor
        self.portAddress = portAddress
        sender = PacketSender(descriptor, isPortsEnd: port != nil, hasAddress: portAddress != nil)
        self.port = Mutex(port)
        isPortsEnd = port != nil
        firstPeer = if let peer { peer } else { try PortError.converting(PeerIdentity(ofPeerOf: descriptor.rawValue)) }
        owner = PeerID(firstPeer, on: descriptor.rawValue)
        ConnectionTable.shared.add(way ?? .connected(descriptor), as: firstPeer.connection)
    }

    /// Takes over a socket that is connected to a port, at the right's end.
    ///
    /// - Throws: ``PortError`` when the kernel does not name the process at the other end.
    package convenience init(toPort descriptor: SharedDescriptor) throws(PortError) {
        try self.init(descriptor, port: nil)
    }

    deinit {
        if isInherited { ConnectionTable.shared.removeInherited(number) }
        close(PortError(.peerDied))
    }

    /// Whether this is a forked child's copy of its parent's connection, whose socket and locks it must not touch.
    var isInherited: Bool { forkGuard.isInherited }

    /// The port that the peer's messages are for; nil once it has ended, and at the right's end.
    var sink: (any MessageSink)? { port.withLock { $0 } }

    /// The accounts that the peers of a port are charged to; nil at the right's end.
    func quotas(of sink: (any MessageSink)?) -> PeerQuotas? {
        if let known = knownQuotas.object { return known }
        guard isPortsEnd, let found = sink?.sockets?.quotas else { return nil }
        knownQuotas.set(found)
        return found
    }

    /// The process at the other end.
    package var peer: PeerIdentity {
        newOwner.withObject { $0.identity.withLock { $0 } } ?? firstPeer
    }

    /// The number of the connection in this process.
    var number: UInt64 { firstPeer.connection }

    var hasRings: Bool { receiver.ring.object != nil }

    /// Sets when rings are offered from now on.
    func useRings(_ use: RingPolicy) { sender.channel.path.withLock { $0.use = use } }

    /// Whether rings were offered and neither accepted nor refused.
    var awaitsRingAnswer: Bool { sender.channel.path.withLock { $0.isOffered } }

    func checkProcess() throws(PortError) { if isInherited { throw PortError(.forkedProcess) } }

    var isClosed: Bool { hasFailed.load(ordering: .sequentiallyConsistent) }

    /// Whether the port at the other end is known to be gone.
    private var isKnownDead: Bool {
        isClosed || state.withLock { $0.life.hasLostOtherPort }
    }

    /// Why the port at the other end is gone; nil when that is not known.
    var endReason: PortEndReason? { state.withLock { $0.coldState.endReason } }

    /// Notes why the port is gone, unless that is known: from then on each notice and each state has the same reason.
    ///
    /// - Returns: what is known.
    func noteEnd(_ reason: PortEndReason?) -> PortEndReason? {
        state.withLock { state in
            state.noteEnd(reason)
            return state.coldState.endReason
        }
    }

    /// Whether the port at the other end is gone, as far as the kernel knows.
    func pollIsDead() -> Bool {
        if isKnownDead { return true }
        let events = try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)
        return !(events ?? []).isDisjoint(with: [.peerClosed, .hangUp, .error])
    }

    /// As `pollIsDead`, but first reads what the peer has sent, if anything: perhaps that its port has ended. Must not
    /// be called with a lock held.
    func isFoundDead() -> Bool {
        if isKnownDead { return true }
        let events = (try? sysPoll(descriptor.rawValue, [.readable, .peerClosed], until: .distantPast)) ?? []
        if !events.isDisjoint(with: [.peerClosed, .hangUp, .error]) { return true }
        if events.isEmpty { return false }
        receiveUnlessReceiving()
        return isKnownDead
    }

    /// Ends the connection: requests that await a reply fail with `reason`, the peer sees the end at once; with
    /// `shutsDown` false it sees nothing, because the connection goes on in another process.
    func close(_ reason: PortError, shutsDown: Bool = true) {
        if isInherited { return }
        typealias Cleanup = (
            source: RunLoopSource?, notices: [DeathNotice], released: (SocketConnection?, [UInt64: PendingReply]),
            unanswered: [ReplyTarget], abandoned: [@Sendable () -> Void]
        )
        let cleanup = state.withLock { state -> Cleanup? in
            if case .closed = state.life { return nil }
            state.noteEnd(PortEndReason(reason))
            state.life = .closed(reason)
            hasFailed.store(true, ordering: .sequentiallyConsistent)
            let (unanswered, abandoned) = state.requests.endAllSent()
            return (state.source.take(), state.removeDeathNotices(), state.removeRetained(), unanswered, abandoned)
        }
        guard let cleanup else { return }
        ConnectionTable.shared.remove(number)
        sharedMemory.object?.close()
        receiver.ring.object?.close()
        receiver.ringEnd.withLock { $0 }?.wakeChannel.end()
        if shutsDown { sysShutDown(descriptor.rawValue) }  // also wakes a loop that sleeps
        // A connection that waited until descriptors are closed may be out of its set: its end must be seen.
        if !isPortsEnd, receiver.isThrottled.load(ordering: .sequentiallyConsistent) {
            receiver.closingCount.object?.setWaiting(nil, receiver.isThrottled)
            updateInterest()
        }
        _ = sender.backlog.withLock { backlog in
            backlog.isOver = true
            return backlog.exchangeCharge(nil)
        }
        cleanup.source?.invalidate()
        for target in cleanup.unanswered { target.failAsking(reason.delivered(.unknown)) }
        for notify in cleanup.abandoned { notify() }
        Callouts.drop(cleanup.abandoned)
        PeerEndWatch.deliver(cleanup.notices, of: self)
    }

    /// The right is gone: ends the connection as soon as no reply is awaited over it, and no notice waits for the
    /// port's end.
    func retire() {
        // Perhaps the page on which the other side notes what it returns.
        if sharedMemory.object?.lender.isLending == true { receiveUnlessReceiving() }
        let isIdle = state.withLock { state in
            state.life.ownSideDidEnd()
            // What waits for a reply need not retain it: a notice of a bounce does not.
            if state.isNeeded { state.coldState.own = self }
            return !state.isNeeded
        }
        if isIdle { close(PortError(.deadName)) }
        closeIfFlushed()
    }

    /// The port at this end is gone: the peer can send nothing more, unread data is dropped, and the connection ends as
    /// soon as no reply is owed over it.
    func portDidEnd() {
        _ = port.withLock { $0.take() }  // released without the lock
        state.withLock { $0.life.ownSideDidEnd() }
        // Sent before there is room: a sender that waits for room finds a dead name.
        sendPortEnded()
        // First: a peer that finds both socket and ring closed knows that the data in the ring will be dropped.
        receiver.ring.object?.close()
        sysShutDown(descriptor.rawValue, receivingOnly: true)
        // After the last packet can have come: a thread that is receiving, and sees it afterwards, drops them all.
        receiver.hasPortEnded.store(true, ordering: .sequentiallyConsistent)
        receiver.dropUnread(from: self)
        if !state.withLock({ $0.requests.hasUnanswered }) { close(PortError(.peerDied)) }
    }

    /// The port at the other end is gone: delivers the death notices, with the reason if that is known. Replies may
    /// still come.
    func otherPortDidEnd(_ reason: PortEndReason? = nil) {
        let (notices, isDone) = state.withLock { state in
            state.noteEnd(reason)
            state.life.otherPortDidEnd()
            return (state.removeDeathNotices(), !isPortsEnd && state.isDone)
        }
        PeerEndWatch.deliver(notices, of: self)
        if isDone { close(PortError(.deadName)) }
    }
}

// MARK: Sending

extension SocketConnection {
    /// Sends a message; waits for room until the deadline.
    ///
    /// - Parameters:
    ///   - message: the message. If it has a reply right, the reply is awaited here.
    ///   - token: the token of the message that it answers; zero for a message to the port.
    ///   - deadline: one that has passed still sends when there is room.
    /// - Throws: ``PortError`` when the message was not sent as a whole: it exceeds a limit, the deadline came, the
    ///   kernel failed, or the other end is gone. Then no reply to it is awaited.
    package func send(_ message: MachMessage, answering token: UInt64 = 0, until deadline: SendDeadline)
        throws(PortError)
    {
        var message = message
        try send(&message, answering: token, until: deadline)
    }

    /// As above. The bytes of a plain message are moved out while it is sent: so they are not retained, and are
    /// recycled for other messages then.
    func send(_ message: inout MachMessage, answering token: UInt64 = 0, until deadline: SendDeadline)
        throws(PortError)
    {
        try checkProcess()
        if try sendPlain(&message, answering: token, until: deadline) { return }
        var deadline = deadline
        let moves = try message.parts.hasReceiveRight ? beginMoves(of: message, until: &deadline) : nil
        let encoded = try message.encoded(until: &deadline, moving: moves, lending: lender(for: message))
        var transmission = try begin(message, encoded, answering: token)
        do throws(PortError) {
            try sender.transmit(&transmission, until: deadline, over: self)
            try moves?.waitUntilTaken(until: deadline.fix(), over: self)
        } catch {
            if moves?.end(because: error) != true {
                didNotSend(transmission)
                throw error
            }
        }
        didSend(transmission)
    }

    var sentByteCount: Int { sender.sentByteCount.load(ordering: .relaxed) }

    /// Sends a small packet, now or when there is room. Never waits.
    func enqueue(_ packet: OutgoingPacket) { sender.enqueue(packet, over: self) }

    /// Sends the backlog as far as there is room. Never waits.
    func flush() { if !sender.backlog.isIdle { sender.flush(over: self) } }
}
