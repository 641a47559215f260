// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What a port is made of: its queue, the run-loop sources that wake when a message comes, the sockets through which other
// processes reach it, and who wants to hear of its end. The receive right (`MachPort`) and the send rights of this process
// share it; when the receive right goes, the core stays as a dead name until the last send right goes.
//
// It is also the in-memory transport: sending is a queue operation under one lock, and rings the sources only when the
// queue was empty. A ring is a system call only when the receiver's loop sleeps.

package import PortSystem
package import RunLoopCore
import Synchronization

package final class PortCore: PortDestination {
    struct State {
        /// Each change keeps the doorbell in step: it is readable while messages wait, and for good once the port is dead.
        var mailbox: MailboxState {
            didSet { bell?.match(mailbox) }
        }
        var bell: PortDoorbell?
        /// Tasks that wait for a message, the longest first; and what receives from the sockets for them.
        var waitingTasks: [WaitingTask] = []
        var taskWatch: TaskSocketWatch?
        /// Rung when the queue becomes non-empty: the port's own source, and those of blocked receivers.
        var sources: [RunLoopSource] = []
        var sockets: PortSockets?
        /// How many messages were taken since the sockets were looked at.
        var takesSinceLook = 0
        var address: PortAddress?
        /// Who wants to know of the port's end; each leaves its handler behind when its loop ends.
        var deathNotices: [LoopNotice<Void>] = []
        var senders = SenderTally()
        var turns = HandlerTurns()
        /// Messages in the sockets have found no room since the sockets were looked at.
        var socketsWait = false
        /// Whether the place that becomes free next is for a message in the sockets.
        var isSocketsTurn = false
        /// What else ends with the port, for example its names.
        var endings: [Int: @Sendable () -> Void] = [:]
        var lastEnding = 0
    }

    /// Takes a message before it is queued, or says that it is for the queue. Called on the sending or receiving thread,
    /// which may hold the lock of a connection's assembly.
    typealias Interceptor = @Sendable (MachMessage) -> Bool

    let state: Mutex<State>
    /// Somebody has received other than by the port's sources: what serves the port cannot be told any more.
    let receivesElsewhere = Atomic<Bool>(false)
    /// Tells the ports of this process apart in descriptions and errors.
    let number = PortCore.lastNumber.add(1, ordering: .relaxed).newValue  // immutable
    private static let lastNumber = Atomic<UInt64>(0)
    private let forkCount = sysForkCount()  // immutable
    private let intercept: Interceptor?  // immutable

    init(queueLimit: Int, policy: QueuePolicy = .refuse, intercept: Interceptor? = nil) {
        self.intercept = intercept
        state = Mutex(State(mailbox: MailboxState(limit: queueLimit, policy: policy)))
    }

    package var label: String { "port \(number)" }

    package var isDead: Bool {
        isInherited || state.withLock { $0.mailbox.isDead }
    }

    /// Whether this is a forked child's copy of its parent's port. Its locks may be held by threads that are not there.
    var isInherited: Bool { sysForkCount() != forkCount }

    package func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }

    /// Whether the thread that sends a message may also be the one that serves it.
    var mayServeSenders: Bool { intercept != nil }

    var sockets: PortSockets? { state.withLock { $0.sockets } }

    // MARK: Sending

    package func send(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try checkProcess()
        switch admit(message, mayWait: deadline > .distantPast) {
        case .accepted: return
        case .dead: throw PortError(.deadName)
        case .full: throw PortError(.sendTimedOut)
        case .wait(let sender):
            let isOver = sender.event.wait(until: deadline)
            let (stillWaited, isDead) = state.withLock { state in
                (state.mailbox.stopWaiting(sender), state.mailbox.isDead)
            }
            // When the port ends, those who wait stay in its line: they were not served.
            if stillWaited { throw PortError(isOver || isDead ? .deadName : .sendTimedOut) }
        }
    }

    /// Queues a message and rings the receivers when they may be asleep.
    func admit(_ message: MachMessage, exceedingLimit: Bool = false, mayWait: Bool = false) -> MailboxState.Admission {
        if isInherited { return .dead }
        if let intercept, !isDead, intercept(message) { return .accepted(wasEmpty: false) }
        let (admission, sources, task, dropped) = state.withLock { state in
            let admission = state.mailbox.admit(message, exceedingLimit: exceedingLimit, mayWait: mayWait)
            let dropped = state.mailbox.takeDropped()
            guard case .accepted(let wasEmpty) = admission else {
                return (admission, [RunLoopSource](), WaitingTask?.none, dropped)
            }
            return (admission, wasEmpty ? state.sources : [], state.nextTask(), dropped)
        }
        for source in sources { source.ring() }
        task?.wake()
        for message in dropped { message.replyTarget?.fail(PortError(.messageDropped)) }
        return admission
    }

    // MARK: Receiving

    /// Whether a message waits in the queue.
    var hasMessage: Bool {
        state.withLock { !$0.mailbox.queue.isEmpty }
    }

    /// So many messages may be taken before the sockets are looked at again.
    private static let takesBetweenLooks = 32

    /// Takes the oldest message of the queue; looks at the sockets when the queue is empty, and now and then when it is not.
    func take() -> MachMessage? {
        takeQueued() ?? (receiveFromSockets() ? takeQueued() : nil)
    }

    func takeQueued(inTurn number: UInt64? = nil) -> MachMessage? {
        guard let taken = state.withLock({ $0.take(inTurn: number, looksAfter: Self.takesBetweenLooks) }) else {
            return nil
        }
        taken.message.replyTarget?.noteRead()
        taken.task?.wake()
        taken.sender?.event.set()
        for notice in taken.notices { notice.tell(.possible) }
        if taken.mustLook {
            receiveFromSockets()
            change { $0.endKeepingPlace() }
        }
        return taken.message
    }

    /// Changes the queue so that waiting senders may get in, and tells whoever has to know.
    func change(_ body: (inout MailboxState) -> (senders: [WaitingSender], wasEmpty: Bool)) {
        let (senders, sources, task, notices) = state.withLock { state in
            let (senders, wasEmpty) = body(&state.mailbox)
            let sources = wasEmpty && !senders.isEmpty ? state.sources : []
            return (senders, sources, state.nextTask(), state.mailbox.takeRoomNotices())
        }
        for sender in senders { sender.event.set() }
        for source in sources { source.ring() }
        task?.wake()
        for notice in notices { notice.tell(.possible) }
    }

    /// Moves what waits in the sockets into the queue, as far as there is room.
    ///
    /// - Returns: whether there are sockets.
    @discardableResult
    func receiveFromSockets() -> Bool {
        let sockets = state.withLock { state in
            state.takesSinceLook = 0
            state.socketsWait = false
            return state.sockets
        }
        guard let sockets else { return false }
        sockets.receive(into: self)
        return true
    }

    /// Whether a message may be read from the sockets now. If not, the next places that become free are shared between
    /// sockets and senders of this process, by turns.
    func hasRoomForSockets() -> Bool {
        state.withLock { state in
            let hasRoom = state.mailbox.room > 0
            if !hasRoom { state.socketsWait = true }
            return hasRoom
        }
    }

    // MARK: Replies to requests made here come back in memory.

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) { try checkProcess() }
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}
