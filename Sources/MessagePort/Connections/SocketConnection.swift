// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// One connection between a right in one process and its port in another. Both ends are alike: each sends messages, asks
// for replies under tokens of its own, and answers the other's tokens. What differs is where a message that answers
// nothing goes: at the port's end into the port's queue; at the right's end it breaks the format.
//
// Replies need no address of their own: they come back over the connection that brought the request, so a request costs one
// packet each way. When the connection ends, everyone who waits for a reply over it is told.
//
// Sending and receiving each have their own lock and may go on at the same time. See Docs/LockOrder.md.

package import PortSystem
import RunLoopCore
import Synchronization

package final class SocketConnection: Sendable {
    struct State {
        /// Why the connection ended.
        var failure: PortError?
        /// The port at the other end takes no more messages; replies may still come.
        var isDeadName = false
        var lastToken: UInt64 = 0
        /// Who waits for a reply, by the token that asked for it.
        var awaited: [UInt64: ReplyTarget] = [:]
        /// The tokens among them whose messages are still being sent. Until that has succeeded, the reply right is the
        /// caller's, and the end of the connection does not touch it.
        var unsent: Set<UInt64> = []
        var deathWatchers: [DeathWatcher] = []
        /// Receives while a loop runs, for requests and death watchers; made when first needed.
        var source: RunLoopSource?
        /// The right is gone: the connection ends when nobody needs it any more.
        var isRetired = false
        /// How many requests that came over the connection are neither answered nor dropped.
        var owedReplies = 0
        /// The tokens of those requests.
        var owed: Set<UInt64> = []
        /// Those among them whose requester no longer waits.
        var abandoned: Set<UInt64> = []
        /// Who is to be told that a requester no longer waits, by its token.
        var abandonWatches: [UInt64: [@Sendable () -> Void]] = [:]
        /// The port is gone: the connection ends when it owes no reply any more.
        var hasLostPort = false
        /// The connection itself, while nothing else keeps it for those who watch for the port's end.
        var own: SocketConnection?
        /// What the peer uses this end for.
        var use = Use.nothing
        /// The ports that listen to the connection because they await replies over it; not the port that it belongs to.
        var listeners: [WeakReference<PortSockets>] = []

        /// Whether somebody waits for a reply, or for the port's end.
        var isNeeded: Bool { !awaited.isEmpty || !deathWatchers.isEmpty }

        /// The peer sends messages.
        ///
        /// - Returns: whether it has only looked on before: the port has a sender more.
        mutating func noteMessages() -> Bool {
            defer { use = .messages }
            return use == .looking
        }
    }

    /// What a peer does over the connection: one that only looks on is none of the port's senders.
    enum Use: Sendable {
        case nothing
        case looking
        case messages
    }

    /// How much may be overdue at the right's end when more comes; beyond it the connection ends. What is one message may
    /// exceed it.
    package static let overdueLimit = 16 << 20
    /// The same at the port's end: the replies to the requests that were read before the first of them found no room.
    package static let overdueReplyLimit = 256 << 20

    package let peer: PeerIdentity  // immutable
    /// In whose account it is.
    let owner: PeerID  // immutable
    /// The port that this end belongs to, kept until it ends; nil at the right's end.
    let port: Kept<any MessageSink>?  // immutable
    let descriptor: SharedDescriptor  // immutable
    let state = Mutex(State())
    let assembly = Mutex(ReceiveState())  // held while receiving, so that messages keep their order
    let sendingLane: Mutex<OutgoingPath>  // changed by whoever has the turn, or receives
    let turn = SendLock()
    let overdue: BacklogLock
    /// How many bytes of messages' payloads have been sent: for whoever shows progress.
    let sentByteCount = Atomic<Int>(0)
    /// How many descriptors that came over the connection wait to be closed.
    let closingCount = ClosingCount()
    /// Nothing new is read, because the peer's process takes up too much. At the port's end changed under the lock of the
    /// port's sockets.
    let isHeldBack = Atomic<Bool>(false)
    /// The ring from which this end reads, to be closed with the connection or its port. Set once, when there are rings.
    let incomingRing = SetOnceReference<SharedRing>()
    /// What this end has brought for the rings. Set once, before that ring.
    let ringEnd = SetOnceReference<RingEnd>()
    /// The accounts of the port that this end belongs to: set when they are first asked for.
    private let knownLedger = SetOnceReference<PeerQuotas>()
    /// Something may be in the ring of which neither the socket nor the peer will tell. Changed under the lock of `assembly`.
    let isUntold = Atomic<Bool>(false)
    /// The number of the look of a loop that looks into the ring also while it handles; zero for none. Set under the lock of
    /// `assembly`.
    let keptLook = Atomic<UInt64>(0)
    /// The port is gone, and nothing more comes from the peer: what lies unread is the last.
    let isDeaf = Atomic<Bool>(false)
    /// The connection is closed: `state` has a failure. Changed under its lock; to read it needs none.
    private let hasFailed = Atomic<Bool>(false)
    private let forkCount = sysForkCount()  // immutable

    /// Takes over a connected socket.
    ///
    /// - Parameters:
    ///   - descriptor: the socket.
    ///   - port: the port that its messages are for; nil at the right's end.
    ///   - peer: who is at the other end; nil to ask the kernel, which for a pair of sockets names their maker.
    /// - Throws: ``PortError`` when the kernel does not tell who is at the other end.
    init(_ descriptor: SharedDescriptor, port: (any MessageSink)?, peer: PeerIdentity? = nil) throws(PortError) {
        self.descriptor = descriptor
        sendingLane = Mutex(OutgoingPath(use: port == nil ? .standard : .never))
        overdue = BacklogLock(countedIn: port == nil ? nil : .current)
        self.port = port.map { Kept($0) }
        self.peer = if let peer { peer } else { try Self.peer(of: descriptor) }
        owner = PeerID(self.peer, on: descriptor.rawValue)
    }

    /// Takes over a socket that is connected to a port, at the right's end.
    ///
    /// - Throws: as above.
    package convenience init(toPort descriptor: SharedDescriptor) throws(PortError) {
        try self.init(descriptor, port: nil)
    }

    private static func peer(of descriptor: SharedDescriptor) throws(PortError) -> PeerIdentity {
        do throws(SystemError) {
            return try PeerIdentity(ofPeerOf: descriptor.rawValue)
        } catch {
            throw PortError(error)
        }
    }

    deinit {
        close(PortError(.peerDied))
    }

    /// Whether this is a forked child's copy of its parent's connection, whose socket and locks it must not touch.
    var isInherited: Bool { sysForkCount() != forkCount }

    /// - Parameter core: the port that the peer's messages are for.
    /// - Returns: the accounts in which they are counted; nil at the right's end.
    func ledger(of core: (any MessageSink)?) -> PeerQuotas? {
        if let known = knownLedger.object { return known }
        guard port != nil, let found = core?.sockets?.accounts else { return nil }
        knownLedger.set(found)
        return found
    }

    /// Whether the connection has rings.
    var hasRings: Bool { incomingRing.object != nil }

    func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }

    var isClosed: Bool { hasFailed.load(ordering: .sequentiallyConsistent) }

    /// Whether the port at the other end is known to be gone.
    private var isKnownDead: Bool {
        isClosed || state.withLock { $0.isDeadName } || sendingLane.withLock { $0.isClosed }
    }

    /// Whether the port at the other end is gone, as far as the kernel knows.
    var isDeadName: Bool {
        if isKnownDead { return true }
        let seen = try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)
        return !(seen ?? []).isDisjoint(with: [.peerClosed, .hangUp, .error])
    }

    /// As `isDeadName`, but reads what the other end has said, when something lies there: perhaps that its port has ended.
    /// Not to be asked under a lock.
    func isFoundDead() -> Bool {
        if isKnownDead { return true }
        let seen = (try? sysPoll(descriptor.rawValue, [.readable, .peerClosed], until: .distantPast)) ?? []
        if !seen.isDisjoint(with: [.peerClosed, .hangUp, .error]) { return true }
        if seen.isEmpty { return false }
        receiveUnlessReceiving()
        return isKnownDead
    }

    /// Ends the connection: who waits for a reply is told why, the peer sees the end at once.
    func close(_ reason: PortError) {
        if isInherited { return }
        let old = state.withLock { state -> State? in
            guard state.failure == nil else { return nil }
            var old = state
            old.awaited = state.awaited.filter { !state.unsent.contains($0.key) }
            state.failure = reason
            hasFailed.store(true, ordering: .sequentiallyConsistent)
            state.awaited = state.awaited.filter { state.unsent.contains($0.key) }
            state.deathWatchers = []
            state.source = nil
            state.own = nil
            state.abandonWatches = [:]
            return old
        }
        guard let old else { return }
        incomingRing.object?.close()
        ringEnd.object?.wakeChannel.end()
        sysShutDown(descriptor.rawValue)  // ends the sleep of a loop that is parked, too
        // One that has waited for descriptors to be closed may have been put aside: its end is to be seen.
        if port == nil, closingCount.setWaiting(nil, isHeldBack) { updateInterest() }
        _ = overdue.withLock { overdue in
            overdue.isOver = true
            return overdue.charge.take()
        }
        old.source?.invalidate()
        for target in old.awaited.values { target.failAsking(reason.delivered(.unknown)) }
        for watches in old.abandonWatches.values { for tell in watches { tell() } }
        for watcher in old.deathWatchers { watcher.tell() }
    }

    /// The right is gone: ends the connection as soon as nobody waits for a reply over it, or for the port's end.
    func retire() {
        let isIdle = state.withLock { state in
            state.isRetired = true
            if !state.deathWatchers.isEmpty { state.own = self }
            return !state.isNeeded
        }
        if isIdle { close(PortError(.deadName)) }
    }
}

extension SocketConnection {
    /// A request came that wants a reply.
    func willOweReply(to token: UInt64) {
        state.withLock { state in
            state.owedReplies += 1
            state.owed.insert(token)
        }
    }

    /// A request was answered, or dropped, and the peer was told.
    func didSettleReply(to token: UInt64) {
        let (isDone, watches) = state.withLock { state in
            state.owedReplies -= 1
            state.owed.remove(token)
            state.abandoned.remove(token)
            let watches = state.abandonWatches.removeValue(forKey: token)
            return (state.hasLostPort && state.owedReplies == 0, watches)
        }
        withExtendedLifetime(watches) {}  // what a user's handler holds is released without the lock
        if isDone { close(PortError(.peerDied)) }
    }

    /// The port at this end is gone: the peer can send nothing more, what lies unread is dropped, and the connection ends as
    /// soon as no reply is owed over it.
    func portDidEnd() {
        port?.letGo()
        let owesReplies = state.withLock { state in
            state.hasLostPort = true
            return state.owedReplies > 0
        }
        // Said before there is room: who waits for that finds a dead name.
        if owesReplies { sayPortHasEnded() }
        // First: whoever finds the socket closed, and the ring too, knows that what is in the ring will be dropped here.
        incomingRing.object?.close()
        sysShutDown(descriptor.rawValue, .receiving)
        // Set after the last packet can have come: whoever is receiving now, and sees it afterwards, drops them all.
        isDeaf.store(true, ordering: .sequentiallyConsistent)
        dropUnread()
        if state.withLock({ $0.owedReplies == 0 }) { return close(PortError(.peerDied)) }
        if !owesReplies { sayPortHasEnded() }
    }

    /// The port at the other end is gone: who watches for that is told. Replies may still come.
    func otherPortDidEnd() {
        let (watchers, isDone) = state.withLock { state in
            state.isDeadName = true
            let watchers = state.deathWatchers
            state.deathWatchers = []
            return (watchers, state.isRetired && !state.isNeeded)
        }
        for watcher in watchers { watcher.tell() }
        if isDone { close(PortError(.deadName)) }
    }
}
