// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import RunLoopCore
import Synchronization

// A port: its queue, the run-loop sources that a message signals, the sockets through which other processes reach it,
// and the notices of its end. The receive right (`MachPort`) and the send rights of this process share it; without a
// receive right it remains as a dead name until the last send right is released.
//
// It is also the in-memory transport: a send is a queue operation under one lock, and signals the sources only when the
// queue was empty. A signal costs a system call only when the receiver's loop sleeps.
package final class LocalPort: PortEndpoint, MessageSink {
    struct State: ~Copyable {
        // First what both sides change, or only the receiver, then what senders only read: see LineTests.
        var ownership = HandlerOwnership()
        var mailbox: MailboxState
        /// Signalled when the queue becomes non-empty: the port's own source, and those of blocked receivers.
        var sources = SourceList()
        private var coldStorage = ColdStorage<ColdState>()
        var senders = SenderCount()
        /// A handler's thread reads one socket, makes no callouts, and then dequeues: sources need no signal.
        var isReceivedExclusively = false

        /// Whether it may have cold state; does not read it.
        var hasColdState: Bool { !coldStorage.isBlank }

        var coldState: ColdState {
            @inline(__always) _read { yield coldStorage.value }
            @inline(__always) _modify { yield &coldStorage.value }
        }

        mutating func removeColdState() -> ColdStorage<ColdState> { coldStorage.take() }

        init(mailbox: consuming MailboxState) {
            self.mailbox = mailbox
        }
    }

    /// The state, under the port's one lock.
    struct LockedState: ~Copyable, Sendable {
        private let state: Mutex<State>

        init(_ mailbox: consuming sending MailboxState) {
            state = Mutex(State(mailbox: mailbox))
        }

        /// Reads or changes the state. Then the doorbell follows the queue: it is readable while messages wait, and
        /// permanently once the port is dead.
        @inline(__always)
        borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending State) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            try state.withLock { (state) throws(Failure) -> sending Result in
                defer { if state.hasColdState { state.coldState.updateDoorbell(state.mailbox) } }
                return try body(&state)
            }
        }
    }

    /// State that only some ports have.
    struct ColdState: ColdValue, ~Copyable {
        static let blank = ColdBox<ColdState>()
        var doorbell: PortDoorbell?
        /// Tasks that wait for a message, the longest-waiting first; and what receives from the sockets for them.
        var waitingTasks: [TaskWaiter] = []
        var taskReceiver: TaskReceiver?
        var sockets: PortSockets?
        /// Which processes the port talks to; nil for the standard rules.
        var rules: PeerConfiguration?
        /// Stays when the port has ended, so that rights in transit equal those of this process.
        var address: PortAddress?
        /// Addresses whose paths are gone.
        var oldAddresses: [PortAddress] = []
        var addresses: [PortAddress] { oldAddresses + (address.map { [$0] } ?? []) }
        /// How many messages were dequeued or leased since the sockets were last polled.
        var dequeuesSincePoll = 0
        /// Whether messages in the sockets found no room since the sockets were last polled.
        var socketsWait = false
        /// Whether the next free slot is for a message in the sockets.
        var isNextSlotForSockets = false
        /// The object that owns the port: kept alive instead of the port, and found by the port's name.
        weak var owner: (any AnyObject & Sendable)?
        /// Notices of the port's end; each drops its handler when its loop ends.
        var deathNotices: [LoopNotification<PortEndReason>] = []
        var senderNotices: [LoopNotification<Void>] = []
        /// What counts the rights of other processes.
        var pipes = PresencePipes<SharedDescriptor>()
        /// What else ends with the port, such as its names.
        var endings: [Int: EndAction] = [:]
        var lastEnding = 0
        /// The connections that get copies of the messages; nil where none may.
        var taps: [TapConnection]?
        var isTapped: Bool { taps?.isEmpty == false }
        /// How many messages were dequeued while the port was tapped.
        var tappedCount: UInt64 = 0
        /// Hands the port over when another process asks for that; nil where none may.
        var handOver: HandOver?
        /// Whether it is being handed over because another process has asked for that: once at a time.
        var isHandingOver = false
        /// Whether the port is another process's.
        var hasLeft = false
        /// The right to the port there, while this process has rights that lead here.
        var successor: SendRight?
        /// Whether other processes of this user may send it receive rights.
        var acceptsReceiveRights = false
        /// What it is packed for, until that is settled.
        var move: LocalPortMove?
    }

    /// What else ends with the port.
    struct EndAction: Sendable {
        let call: @Sendable () -> Void
        /// Whether it is dropped when the port moves to another process.
        let mayMove: Bool
        /// What goes along then; with neither, the port cannot move.
        let attachment: (any PortAttachment)?
    }

    /// Handles a message that can be answered before it is queued, or returns false: then it is queued. A message that
    /// cannot be answered, as most of a stream, is queued without a call. Called on the sending or receiving thread,
    /// which may hold the lock of a `PacketReceiver`.
    typealias Interceptor = @Sendable (MachMessage) -> Bool

    /// Holds an interceptor: few ports have one, so the others pay one pointer.
    final class Interception: Sendable {
        let intercepts: Interceptor  // immutable

        init(_ intercepts: @escaping Interceptor) {
            self.intercepts = intercepts
        }
    }

    let state: LockedState
    /// Whether messages were received other than by the port's sources: which threads serve the port is then unknown.
    let receivesElsewhere = Atomic<Bool>(false)
    /// Whether the queue policy chooses among all that has arrived, so that the sockets are read before the queue.
    let readsAhead: Bool  // immutable; here it costs no memory
    /// How many times the receive right's handler was replaced.
    let receiverChanges = Atomic<UInt32>(0)  // here it costs no memory
    private let forkGuard = ForkGuard()  // immutable
    /// Identifies the port within this process in descriptions and errors.
    let number = LocalPort.lastNumber.add(1, ordering: .relaxed).newValue  // immutable
    private static let lastNumber = Atomic<UInt64>(0)
    let interception: Interception?  // immutable

    init(queueLimit: Int, policy: QueuePolicy = .refuse, intercept: Interceptor? = nil) {
        interception = intercept.map { Interception($0) }
        readsAhead = policy != .refuse
        state = LockedState(MailboxState(limit: queueLimit, policy: policy))
    }

    deinit {
        if isInherited { return }
        let (addresses, sockets) = state.withLock { ($0.coldState.addresses, $0.coldState.sockets) }
        // A port dies before it is released; otherwise its sockets would stay open for the life of the process.
        sockets?.quotas.whenBelowLimits(nil)
        for address in addresses { RightsTable.shared.prune(address) }
    }

    package var label: String { "port \(number)" }

    package var isDead: Bool { isInherited || state.withLock { $0.mailbox.isDead } }

    /// Whether this is a forked child's copy of its parent's port, whose locks may be held by threads that do not exist
    /// here.
    package var isInherited: Bool { forkGuard.isInherited }

    package func checkProcess() throws(PortError) {
        if isInherited { throw forkedProcessError }
    }

    /// Not inlined, so that a check that passes does not prepare the stack for the error.
    private var forkedProcessError: PortError {
        @inline(never) get { PortError(.forkedProcess).at(label) }
    }

    /// Whether the thread that sends a message may also serve it.
    var mayServeSenders: Bool { interception != nil }

    var sockets: PortSockets? { state.withLock { $0.coldState.sockets } }

    // MARK: Receiving

    var hasMessage: Bool {
        !isInherited && state.withLock { !$0.mailbox.isFrozen && !$0.mailbox.queue.isEmpty }
    }

    /// Dequeues the oldest message; polls the sockets when the queue is empty, and occasionally when it is not.
    ///
    /// When it returns nil, the doorbell is no longer readable, or is signalled again for what is left.
    func receive() -> MachMessage? {
        var budget = receiveBudget
        if readsAhead { receiveAllFromSockets(&budget) }
        if let message = dequeueMessage() { return message }
        for _ in 0..<Tuning.pollsForOne {
            let count = receiveFromSockets(&budget)
            if let message = dequeueMessage() { return message }
            if count == 0 { return nil }
        }
        state.withLock { $0.coldState.doorbell?.signalAgain() }
        return nil
    }

    /// Changes the queue so that waiting senders may be admitted, and wakes and notifies all that this concerns.
    func change(_ body: (inout MailboxState) -> (senders: [BlockedSender], wasEmpty: Bool)) {
        let (senders, sources, task, notices, mustTimeGrants) = state.withLock { state in
            let (senders, wasEmpty) = body(&state.mailbox)
            let sources = wasEmpty && !senders.isEmpty ? state.sources : nil
            let notices = state.mailbox.removeDueRoomNotices()
            return (senders, sources, state.nextTask(), notices, state.mailbox.beginGrantTiming())
        }
        for sender in senders { sender.wake() }
        sources?.ring()
        task?.wake()
        for notice in notices { notice.notify(.possible) }
        if mustTimeGrants { timeGrants() }
    }

    var receiveBudget: ReceiveBudget { readsAhead ? .choosing : .standard }

    @discardableResult
    package func receiveFromSockets() -> Int {
        if isInherited { return 0 }
        var budget = receiveBudget
        return receiveFromSockets(&budget)
    }

    /// Moves messages from the sockets into the queue, as far as there is room.
    ///
    /// - Parameters:
    ///   - budget: how many packets may still be read.
    ///   - generation: the generation of the source whose handler takes a message at once: one is enough.
    /// - Returns: how many sockets had something to read.
    func receiveFromSockets(_ budget: inout ReceiveBudget, forGeneration generation: UInt64? = nil) -> Int {
        let sockets = state.withLock { state -> PortSockets? in
            guard let sockets = state.coldState.sockets else { return nil }
            state.coldState.dequeuesSincePoll = 0
            state.coldState.socketsWait = false
            return sockets
        }
        return sockets?.receive(into: self, &budget, forGeneration: readsAhead ? nil : generation) ?? 0
    }

    /// Moves all messages from the sockets into the queue, whose policy drops those that do not fit.
    func receiveAllFromSockets(_ budget: inout ReceiveBudget) {
        for _ in 0..<Tuning.pollsForAll where budget.isSpent || receiveFromSockets(&budget) == 0 { return }
    }

    /// Whether a message may be read from the sockets now. If not, the next free slots alternate between sockets and
    /// senders of this process.
    func hasRoomForSockets() -> Bool {
        state.withLock { state in
            if state.mailbox.room > 0 { return true }
            // Leased messages would be taken without a poll of the sockets.
            state.mailbox.revokeLease()
            state.coldState.socketsWait = true
            return false
        }
    }

    func isQueueShorter(thanLimitAnd excess: Int) -> Bool {
        withMailbox(or: false) { $0.isShorter(thanLimitAnd: excess) }
    }

    /// Whether messages in the sockets wait for room: polling the sockets is useless until there is some.
    var socketsAreBlocked: Bool {
        !isInherited && state.withLock { $0.coldState.socketsWait && $0.mailbox.room == 0 }
    }

    // MARK: Replies to requests made here come back in memory.

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) { try checkProcess() }
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}

// MARK: - Ending

extension LocalPort {
    @discardableResult
    package func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation {
        try checkProcess()
        let pending = LoopNotification<PortEndReason>(on: notice.loop, in: notice.mode, notice.handler)
        let isDead = state.withLock { state in
            if state.mailbox.isDead { return true }
            // Notices of ended loops are removed before the list grows.
            let isFull = state.coldState.deathNotices.count == state.coldState.deathNotices.capacity
            if isFull { state.coldState.deathNotices.removeAll { $0.isOver } }
            state.coldState.deathNotices.append(pending)
            return false
        }
        if isDead {
            if let successor { return try successor.destination.awaitDeath(notice) }
            pending.notify(.invalidated)
        }
        return { [weak pending] in pending?.cancel() }
    }

    package func awaitRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        try checkProcess()
        // Retained until they are removed, so that their identities stay theirs.
        let over = state.withLock { $0.mailbox.roomNotices }.filter(\.isOver)
        let forgotten = Set(over.map { ObjectIdentifier($0) })
        let possibility = state.withLock { $0.mailbox.awaitRoom(notice, forgetting: forgotten) }
        withExtendedLifetime(over) {}
        if case .deadName? = possibility, let successor { return try successor.destination.awaitRoom(notice) }
        if let possibility { notice.notify(possibility) } else { checkCredits() }
    }

    /// Registers `ending` to be called when the port dies, before `die` returns. Not for callouts to a user's code.
    ///
    /// - Parameters:
    ///   - mayMove: whether it is dropped when the port moves to another process.
    ///   - attachment: what goes along then; with neither, the port cannot move.
    ///   - ending: what is called.
    /// - Returns: a number for `cancelEnding`; nil when the port is dead, or moves and there is an attachment, and `ending`
    ///   was called.
    package func whenDead(
        mayMove: Bool = false, attachment: (any PortAttachment)? = nil, _ ending: @escaping @Sendable () -> Void
    ) -> Int? {
        let number = state.withLock { state -> Int? in
            // What would go along comes too late for a port that is packed.
            if state.mailbox.isDead || attachment != nil && state.mailbox.isFrozen { return nil }
            state.coldState.lastEnding += 1
            state.coldState.endings[state.coldState.lastEnding] = EndAction(
                call: ending, mayMove: mayMove, attachment: attachment)
            return state.coldState.lastEnding
        }
        if number == nil { ending() }
        return number
    }

    package func cancelEnding(_ number: Int) {
        let ending = state.withLock { $0.coldState.endings.removeValue(forKey: number) }
        withExtendedLifetime(ending) {}
    }

    private typealias Cleanup = (
        sources: SourceList, coldState: ColdStorage<ColdState>, bounced: [MachMessage], waitingSenders: [BlockedSender],
        questions: [EarlyQuestion],
        roomNotices: [LoopNotification<SendPossibility>]
    )

    /// Ends the port: frees its names, closes its sockets, wakes senders and receivers, bounces queued messages,
    /// delivers the notices of its end.
    ///
    /// - Returns: false when it was already dead.
    func die() -> Bool {
        if isInherited || endMove() { return false }
        let cleanup = state.withLock { state -> Cleanup? in
            guard let (bounced, waitingSenders, questions) = state.mailbox.die() else { return nil }
            let (sources, coldState) = (state.sources, state.removeColdState())
            state.sources = SourceList()
            // The address stays, so that rights in transit equal those of this process.
            if let doorbell = coldState.value.doorbell { state.coldState.doorbell = doorbell }
            if let address = coldState.value.address {
                (state.coldState.address, state.coldState.oldAddresses) = (address, coldState.value.oldAddresses)
            }
            return (sources, coldState, bounced, waitingSenders, questions, state.mailbox.removeDueRoomNotices())
        }
        guard let cleanup else { return false }
        let coldState = cleanup.coldState
        for address in coldState.value.addresses { RightsTable.shared.didEnd(self, at: address) }
        for source in cleanup.sources.all {
            source.ring()  // a thread blocked in receive(within:) wakes and finds the port dead
            source.invalidate()
        }
        // The names are free before a client can notice the end: it may register them at once.
        for ending in coldState.value.endings.values { ending.call() }
        coldState.value.sockets?.close()
        coldState.value.taskReceiver?.source.invalidate()
        for task in coldState.value.waitingTasks { task.wake() }
        for sender in cleanup.waitingSenders { sender.wake() }
        for message in cleanup.bounced { message.replyTarget?.bounce(PortError(.peerDied)) }
        for notice in coldState.value.deathNotices { notice.notify(.invalidated) }
        for notice in cleanup.roomNotices { notice.notify(.deadName) }
        for notice in coldState.value.senderNotices { notice.cancel() }
        return true
    }
}

// MARK: - Forked

// After fork(2) the child has a copy of each port, but not the threads that may have held its locks, and it shares the
// open sockets with its parent. So it uses none: every call that can fail throws `forkedProcess`, the others do nothing,
// all before they lock. A counter that the C library increments in each new child detects this without a system call.
extension LocalPort {
    /// Calls `body` with the queue; in a forked child returns `value`.
    func withMailbox<Result: Sendable>(or value: Result, _ body: (inout MailboxState) -> Result) -> Result {
        isInherited ? value : state.withLock { body(&$0.mailbox) }
    }

    /// Keeps what the parent owns from being closed and removed.
    func outliveProcess() {
        // SAFETY: nothing is done with the reference: this object is never released.
        _ = unsafe Unmanaged.passRetained(self)
    }
}
