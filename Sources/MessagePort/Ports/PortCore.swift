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
        var deathWatchers: [DeathWatcher] = []
        /// What else ends with the port, for example its names.
        var endings: [Int: @Sendable () -> Void] = [:]
        var lastEnding = 0
    }

    let state: Mutex<State>
    /// Somebody has received other than by the port's sources: what serves the port cannot be told any more.
    let receivesElsewhere = Atomic<Bool>(false)
    /// Tells the ports of this process apart in descriptions and errors.
    let number = PortCore.lastNumber.add(1, ordering: .relaxed).newValue  // immutable
    private static let lastNumber = Atomic<UInt64>(0)

    init(queueLimit: Int) {
        state = Mutex(State(mailbox: MailboxState(limit: queueLimit)))
    }

    package var label: String { "port \(number)" }

    package var isDead: Bool {
        state.withLock { $0.mailbox.isDead }
    }

    var sockets: PortSockets? { state.withLock { $0.sockets } }

    // MARK: Sending

    package func send(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
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
        let (admission, sources, task) = state.withLock { state -> (_, [RunLoopSource], WaitingTask?) in
            let admission = state.mailbox.admit(message, exceedingLimit: exceedingLimit, mayWait: mayWait)
            guard case .accepted(let wasEmpty) = admission else { return (admission, [], nil) }
            return (admission, wasEmpty ? state.sources : [], state.nextTask())
        }
        for source in sources { source.ring() }
        task?.wake()
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

    private func takeQueued() -> MachMessage? {
        let (taken, mustLook, task) = state.withLock { state in
            state.takesSinceLook += 1
            let mustLook = state.sockets != nil && state.takesSinceLook >= Self.takesBetweenLooks
            let taken = state.mailbox.take()
            return (taken, mustLook, state.nextTask())
        }
        task?.wake()
        guard let (message, sender) = taken else { return nil }
        sender?.event.set()
        message.replyTarget?.noteRead()
        if mustLook { receiveFromSockets() }
        return message
    }

    /// Moves what waits in the sockets into the queue, as far as there is room.
    ///
    /// - Returns: whether there are sockets.
    @discardableResult
    func receiveFromSockets() -> Bool {
        let sockets = state.withLock { state in
            state.takesSinceLook = 0
            return state.sockets
        }
        guard let sockets else { return false }
        sockets.receive(into: self)
        return true
    }

    /// How many messages may be read from sockets now.
    var room: Int {
        state.withLock { $0.mailbox.room }
    }

    // MARK: End

    package func watchDeath(_ watcher: DeathWatcher) {
        let isDead = state.withLock { state in
            if !state.mailbox.isDead { state.deathWatchers.append(watcher) }
            return state.mailbox.isDead
        }
        if isDead { watcher.tell() }
    }

    /// Has something end with the port, before `die` returns. Not for callouts to a user's code.
    ///
    /// - Returns: a number for `cancelEnding`; nil when the port is dead and `ending` was called.
    package func whenDead(_ ending: @escaping @Sendable () -> Void) -> Int? {
        let number = state.withLock { state -> Int? in
            if state.mailbox.isDead { return nil }
            state.lastEnding += 1
            state.endings[state.lastEnding] = ending
            return state.lastEnding
        }
        if number == nil { ending() }
        return number
    }

    /// What `whenDead` was given does not end with the port any more.
    package func cancelEnding(_ number: Int) {
        let ending = state.withLock { $0.endings.removeValue(forKey: number) }
        withExtendedLifetime(ending) {}
    }

    /// Ends the port: queued messages bounce, senders and receivers wake, sockets close, watchers are told.
    ///
    /// - Returns: false when it had ended before.
    func die() -> Bool {
        let remains = state.withLock { state -> (State, [MachMessage], [WaitingSender])? in
            guard let (bounced, senders) = state.mailbox.die() else { return nil }
            let old = state
            state.sources = []
            state.sockets = nil
            state.address = nil
            state.deathWatchers = []
            state.endings = [:]
            state.waitingTasks = []
            state.taskWatch = nil
            return (old, bounced, senders)
        }
        guard let (old, bounced, senders) = remains else { return false }
        if let address = old.address { RightsTable.shared.forget(address) }
        for source in old.sources {
            source.ring()  // a thread blocked in receive(within:) wakes and finds the port dead
            source.invalidate()
        }
        old.sockets?.close()
        for ending in old.endings.values { ending() }
        old.taskWatch?.source.invalidate()
        for task in old.waitingTasks { task.wake() }
        for sender in senders { sender.event.set() }
        for message in bounced { message.replyTarget?.fail(PortError(.peerDied)) }
        for watcher in old.deathWatchers { watcher.tell() }
        return true
    }

    // MARK: Replies to requests made here come back in memory.

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) {}
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}
