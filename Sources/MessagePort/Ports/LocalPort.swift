// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import RunLoopCore
import Synchronization

// What a port is made of: its queue, the run-loop sources that wake when a message comes, the sockets through which other
// processes reach it, and who wants to hear of its end. The receive right (`MachPort`) and the send rights of this process
// share it; when the receive right goes, the core stays as a dead name until the last send right goes.
//
// It is also the in-memory transport: sending is a queue operation under one lock, and rings the sources only when the
// queue was empty. A ring is a system call only when the receiver's loop sleeps.
package final class LocalPort: PortEndpoint, MessageSink {
    struct State: ~Copyable {
        private var storedMailbox: MailboxState
        /// Each change keeps the doorbell in step: it is readable while messages wait, and for good once the port is dead.
        var mailbox: MailboxState {
            @inline(__always) _read { yield storedMailbox }
            @inline(__always) _modify {
                defer { if hasExtras { extras.updateDoorbell(storedMailbox) } }
                yield &storedMailbox
            }
        }
        /// Rung when the queue becomes non-empty: the port's own source, and those of blocked receivers.
        var sources = SourceList()
        var ownership = HandlerOwnership()
        /// The handlers under way: the numbers of their sources, and on which loops they run.
        var handlers = HandlersUnderWay.none
        private var rareExtras = Rare<Extras>()
        var senders = SenderTally()
        /// A handler's thread looks at one socket, calls nobody, and then takes what has come: the sources need no ring.
        var isReceivedExclusively = false

        /// Whether it may have any of the extras; told without a look at them.
        var hasExtras: Bool { !rareExtras.isBlank }

        var extras: Extras {
            @inline(__always) _read { yield rareExtras.value }
            @inline(__always) _modify { yield &rareExtras.value }
        }

        mutating func removeExtras() -> Rare<Extras> { rareExtras.take() }

        init(mailbox: consuming MailboxState) {
            storedMailbox = mailbox
        }
    }

    /// What only some ports have.
    struct Extras: Blankable, ~Copyable {
        static let blank = RareBox<Extras>()
        var doorbell: PortDoorbell?
        /// Tasks that wait for a message, the longest first; and what receives from the sockets for them.
        var waitingTasks: [WaitingTask] = []
        var taskWatch: TaskSocketWatch?
        var sockets: PortSockets?
        /// Which processes the port talks to; nil for the standard.
        var rules: PeerRules?
        /// Stays when the port has ended: rights that were on their way are equal then to those that are here.
        var address: PortAddress?
        /// Those whose paths have gone.
        var oldAddresses: [PortAddress] = []
        /// All under which the port is known.
        var addresses: [PortAddress] { oldAddresses + (address.map { [$0] } ?? []) }
        /// How many messages were taken, or claimed, since the sockets were looked at.
        var dequeuesSincePoll = 0
        /// Messages in the sockets have found no room since the sockets were looked at.
        var socketsWait = false
        /// Whether the place that becomes free next is for a message in the sockets.
        var isNextSlotForSockets = false
        /// The object that has the port: it is kept alive in place of the port, and found by the port's name.
        var owner: WeakOwner?
        /// Who wants to know of the port's end; each leaves its handler behind when its loop ends.
        var deathNotices: [LoopNotification<Void>] = []
        /// Who wants to know when it has no senders any more.
        var senderNotices: [LoopNotification<Void>] = []
        /// What else ends with the port, for example its names.
        var endings: [Int: @Sendable () -> Void] = [:]
        var lastEnding = 0
        /// Whether others may watch the messages, and who does.
        var allowsWatching = false
        var watchers: [PortWatcher] = []
        var lastWatcher: UInt64 = 0
        /// How many messages were taken while somebody watched.
        var watchedCount: UInt64 = 0
    }

    /// Takes a message that can be answered before it is queued, or says that it is for the queue; what cannot be
    /// answered, as most messages of a stream, is for the queue unasked. Called on the sending or receiving thread, which
    /// may hold the lock of a connection's assembly.
    typealias Interceptor = @Sendable (MachMessage) -> Bool

    /// Where an interceptor lies: few ports have one, so it takes a pointer's room in the others.
    final class Interception: Sendable {
        let intercepts: Interceptor  // immutable

        init(_ intercepts: @escaping Interceptor) {
            self.intercepts = intercepts
        }
    }

    let state: Mutex<State>
    /// Somebody has received other than by the port's sources: what serves the port cannot be told any more.
    let receivesElsewhere = Atomic<Bool>(false)
    /// Whether the queue's policy is to choose among all that has arrived, so that the sockets are read before the queue.
    let readsAhead: Bool  // immutable; here it takes no room
    /// How often the receive right has been given another handler.
    let receiverChanges = Atomic<UInt32>(0)  // here it takes no room
    private let forkCount = sysForkCount()  // immutable
    /// Tells the ports of this process apart in descriptions and errors.
    let number = LocalPort.lastNumber.add(1, ordering: .relaxed).newValue  // immutable
    private static let lastNumber = Atomic<UInt64>(0)
    let interception: Interception?  // immutable

    init(queueLimit: Int, policy: QueuePolicy = .refuse, intercept: Interceptor? = nil) {
        interception = intercept.map { Interception($0) }
        readsAhead = policy != .refuse
        state = Mutex(State(mailbox: MailboxState(limit: queueLimit, policy: policy)))
    }

    deinit {
        if isInherited { return }
        let (addresses, sockets) = state.withLock { ($0.extras.addresses, $0.extras.sockets) }
        // A port has ended before it goes; if one had not, its sockets would stay for ever.
        sockets?.accounts.serve(nil)
        for address in addresses { RightsTable.shared.prune(address) }
    }

    package var label: String { "port \(number)" }

    package var isDead: Bool {
        isInherited || state.withLock { $0.mailbox.isDead }
    }

    /// Whether this is a forked child's copy of its parent's port. Its locks may be held by threads that are not there.
    package var isInherited: Bool { sysForkCount() != forkCount }

    package func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess).at(label) }
    }

    /// Whether the thread that sends a message may also be the one that serves it.
    var mayServeSenders: Bool { interception != nil }

    var sockets: PortSockets? { state.withLock { $0.extras.sockets } }

    // MARK: Receiving

    /// Whether a message waits in the queue.
    var hasMessage: Bool {
        state.withLock { !$0.mailbox.queue.isEmpty }
    }

    /// So many messages may be taken before the sockets are looked at again.
    private static let dequeuesBetweenPolls = 32

    /// So many times the sockets are looked at for one message: what is read there may be none.
    private static let pollsForOne = 4

    /// Takes the oldest message of the queue; looks at the sockets when the queue is empty, and now and then when it is not.
    ///
    /// When it gives none, the doorbell is not readable any more, or rings again for what is left.
    func receive() -> MachMessage? {
        var budget = receiveBudget
        if readsAhead { receiveAllFromSockets(&budget) }
        if let message = dequeueMessage() { return message }
        for _ in 0..<Self.pollsForOne {
            let count = receiveFromSockets(&budget)
            if let message = dequeueMessage() { return message }
            if count == 0 { return nil }
        }
        state.withLock { $0.extras.doorbell?.signalAgain() }
        return nil
    }

    /// Takes the oldest message of the queue.
    func dequeueMessage() -> MachMessage? {
        var action: DequeueAction?
        var message = state.withLock { $0.dequeue(for: nil, pollingAfter: Self.dequeuesBetweenPolls, &action) }
        settle(&message, action)
        return message
    }

    /// Takes the oldest message for a handler, of which the source's number and the loop are noted, and perhaps a claim to
    /// the next ones.
    func dequeueMessage(for handler: HandlersUnderWay.Handler, _ batch: inout MessageBatch?) -> MachMessage? {
        var (action, missed) = (DequeueAction?.none, SourceList?.none)
        var message = state.withLock { state in
            defer { missed = state.endExclusiveReceive() }
            let taken = state.dequeue(for: handler, pollingAfter: Self.dequeuesBetweenPolls, &action)
            batch = taken == nil ? nil : state.leaseBatch(pollingAfter: Self.dequeuesBetweenPolls)
            return taken
        }
        missed?.ring()
        settle(&message, action)
        return message
    }

    /// Does what is to be done because a message was taken. It is changed where it lies: a copy costs as much as the rest.
    private func settle(_ message: inout MachMessage?, _ action: DequeueAction?) {
        if let action, action.isWatched, let message { show(message) }
        message?.noteDequeued()
        if let action { follow(action) }
    }

    private func follow(_ action: DequeueAction) {
        action.task?.wake()
        action.sender?.waiter.wake()
        for notice in action.notices { notice.notify(.possible) }
        if action.mustPollSockets {
            receiveFromSockets()
            change { $0.endSlotReservation() }
        }
    }

    /// Changes the queue so that waiting senders may get in, and tells whoever has to know.
    func change(_ body: (inout MailboxState) -> (senders: [BlockedSender], wasEmpty: Bool)) {
        let (senders, sources, task, notices) = state.withLock { state in
            let (senders, wasEmpty) = body(&state.mailbox)
            let sources = wasEmpty && !senders.isEmpty ? state.sources : nil
            return (senders, sources, state.nextTask(), state.mailbox.removeDueRoomNotices())
        }
        for sender in senders { sender.waiter.wake() }
        sources?.ring()
        task?.wake()
        for notice in notices { notice.notify(.possible) }
    }

    /// How many packets may be read for one message.
    var receiveBudget: ReceiveBudget { readsAhead ? .choosing : .standard }

    @discardableResult
    package func receiveFromSockets() -> Int {
        var budget = receiveBudget
        return receiveFromSockets(&budget)
    }

    /// Moves what waits in the sockets into the queue, as far as there is room.
    ///
    /// - Parameters:
    ///   - budget: how many packets may still be read.
    ///   - generation: the number of the source whose handler takes what comes, at once: one message will do.
    /// - Returns: of how many sockets something was to be read.
    func receiveFromSockets(_ budget: inout ReceiveBudget, forGeneration generation: UInt64? = nil) -> Int {
        let sockets = state.withLock { state -> PortSockets? in
            guard let sockets = state.extras.sockets else { return nil }
            state.extras.dequeuesSincePoll = 0
            state.extras.socketsWait = false
            return sockets
        }
        return sockets?.receive(into: self, &budget, forGeneration: readsAhead ? nil : generation) ?? 0
    }

    /// So many times the sockets are looked at to read all that has arrived: senders may be as quick as we are.
    private static let pollsForAll = 4

    /// Moves all that waits in the sockets into the queue, whose policy drops what it has no room for.
    func receiveAllFromSockets(_ budget: inout ReceiveBudget) {
        for _ in 0..<Self.pollsForAll where budget.isSpent || receiveFromSockets(&budget) == 0 { return }
    }

    /// Whether a message may be read from the sockets now. If not, the next places that become free are shared between
    /// sockets and senders of this process, by turns.
    func hasRoomForSockets() -> Bool {
        state.withLock { state in
            if state.mailbox.room > 0 { return true }
            // What is claimed would be taken without a look at the sockets.
            state.mailbox.revokeLease()
            state.extras.socketsWait = true
            return false
        }
    }

    /// Whether messages in the sockets wait for room: there is no use in looking at the sockets until there is some.
    var socketsAreHeldUp: Bool { state.withLock { $0.extras.socketsWait && $0.mailbox.room == 0 } }

    // MARK: Replies to requests made here come back in memory.

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) { try checkProcess() }
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}

// MARK: - Ending

extension LocalPort {
    @discardableResult
    package func watchDeath(_ watcher: DeathWatcher) throws(PortError) -> Withdrawal {
        try checkProcess()
        let notice = LoopNotification<Void>(on: watcher.loop, in: watcher.mode) { _ in watcher.handler() }
        let isDead = state.withLock { state in
            if state.mailbox.isDead { return true }
            // Those whose loops have ended are forgotten before the list grows.
            let isFull = state.extras.deathNotices.count == state.extras.deathNotices.capacity
            if isFull { state.extras.deathNotices.removeAll { $0.isOver } }
            state.extras.deathNotices.append(notice)
            return false
        }
        if isDead { notice.notify() }
        return { [weak notice] in notice?.cancel() }
    }

    package func watchRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        try checkProcess()
        if let possibility = state.withLock({ $0.mailbox.awaitRoom(notice) }) { notice.notify(possibility) }
    }

    /// Has something end with the port, before `die` returns. Not for callouts to a user's code.
    ///
    /// - Returns: a number for `cancelEnding`; nil when the port is dead and `ending` was called.
    package func whenDead(_ ending: @escaping @Sendable () -> Void) -> Int? {
        let number = state.withLock { state -> Int? in
            if state.mailbox.isDead { return nil }
            state.extras.lastEnding += 1
            state.extras.endings[state.extras.lastEnding] = ending
            return state.extras.lastEnding
        }
        if number == nil { ending() }
        return number
    }

    /// What `whenDead` was given does not end with the port any more.
    package func cancelEnding(_ number: Int) {
        let ending = state.withLock { $0.extras.endings.removeValue(forKey: number) }
        withExtendedLifetime(ending) {}
    }

    /// What is left of a port that has ended.
    private struct Remains {
        var sources: SourceList
        var extras: Rare<Extras>
        var bounced: [MachMessage]
        var waitingSenders: [BlockedSender]
        var roomNotices: [LoopNotification<SendPossibility>]
    }

    /// Ends the port: its names are freed, sockets close, senders and receivers wake, queued messages bounce, watchers are
    /// told.
    ///
    /// - Returns: false when it had ended before.
    func die() -> Bool {
        if isInherited { return false }
        let remains = state.withLock { state -> Remains? in
            guard let (bounced, waitingSenders) = state.mailbox.die() else { return nil }
            let roomNotices = state.mailbox.removeDueRoomNotices()
            let remains = Remains(
                sources: state.sources, extras: state.removeExtras(), bounced: bounced, waitingSenders: waitingSenders,
                roomNotices: roomNotices)
            state.sources = SourceList()
            // The address stays: rights that were on their way are equal then to those that are here.
            if let doorbell = remains.extras.value.doorbell { state.extras.doorbell = doorbell }
            if let address = remains.extras.value.address {
                (state.extras.address, state.extras.oldAddresses) = (address, remains.extras.value.oldAddresses)
            }
            return remains
        }
        guard let remains else { return false }
        let extras = remains.extras
        for address in extras.value.addresses { RightsTable.shared.didEnd(self, at: address) }
        for source in remains.sources.all {
            source.ring()  // a thread blocked in receive(within:) wakes and finds the port dead
            source.invalidate()
        }
        // Its names are free before a client can notice the end: who hears of it may take them.
        for ending in extras.value.endings.values { ending() }
        extras.value.sockets?.close()
        extras.value.taskWatch?.source.invalidate()
        for task in extras.value.waitingTasks { task.wake() }
        for sender in remains.waitingSenders { sender.waiter.wake() }
        for message in remains.bounced { message.replyTarget?.fail(PortError(.peerDied)) }
        for notice in extras.value.deathNotices { notice.notify() }
        for notice in remains.roomNotices { notice.notify(.deadName) }
        for notice in extras.value.senderNotices { notice.cancel() }
        return true
    }
}

// MARK: - Forked

// After fork(2) the child has a copy of each port, but not the threads that may have held its locks, and it shares the open
// sockets with its parent. So it uses none of them: every call that can fail says `forkedProcess`, the others do nothing, and
// before either a lock is taken. A counter that the C library raises in each new child tells; it costs no system call.
extension LocalPort {
    /// Looks at the queue.
    func withMailbox<Result: Sendable>(or value: Result, _ body: (inout MailboxState) -> Result) -> Result {
        isInherited ? value : state.withLock { body(&$0.mailbox) }
    }

    /// Keeps what is the parent's from being closed and removed.
    func outliveProcess() {
        // SAFETY: nothing is done with the reference: this object is never released.
        _ = unsafe Unmanaged.passRetained(self)
    }
}

// MARK: - Owner

/// An object that is not kept alive.
struct WeakOwner: Sendable {
    weak let object: (any AnyObject & Sendable)?
}

extension LocalPort {
    /// The object that has the port, as long as it is there.
    package var owner: (any AnyObject & Sendable)? {
        if isInherited { return nil }
        // Leaves the lock with the result: its end may take the lock.
        return state.withLock { $0.extras.owner?.object }
    }

    /// Says which object has the port: whatever keeps the port alive keeps that object instead. It holds the port.
    package func setOwner(_ owner: any AnyObject & Sendable) {
        state.withLock { $0.extras.owner = WeakOwner(object: owner) }
    }
}

extension RightsTable {
    /// The live port of this process that has an address.
    package func ownPort(at address: PortAddress) -> LocalPort? {
        // Cast without the table's lock: what else is there may go with this, its last reference, and take the lock.
        let localPort = destination(at: address) as? LocalPort
        return localPort?.isDead == false ? localPort : nil
    }
}
