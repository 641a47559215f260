// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        try checkProcess()
        var hasRoom = false
        switch admitHere(&offered, false, nil, &hasRoom, nil) {
        case .accepted: return
        case .dead: try sendToSuccessor(&offered, until: deadline, PortError(.deadName))
        case .full where deadline.mayWait: try sendWaiting(&offered, until: deadline.instant)
        case .full, .wait: throw PortError(.sendTimedOut)
        }
    }

    /// Sends a message to the port in the process to which it has moved.
    ///
    /// - Throws: as `send`; `failure` when it has not moved, or the message is gone.
    private func sendToSuccessor(
        _ offered: inout MachMessage?, until deadline: SendDeadline, _ failure: PortError
    ) throws(PortError) {
        guard failure.code == .deadName, offered != nil, let successor else { throw failure }
        try successor.destination.send(&offered, until: deadline)
    }

    private func sendWaiting(_ offered: inout MachMessage?, until deadline: MonotonicInstant) throws(PortError) {
        spinForRoom(until: deadline)
        do throws(PortError) {
            try queue(&offered, until: deadline)
        } catch {
            try sendToSuccessor(&offered, until: .instant(deadline), error)
        }
    }

    /// Queues a message when there is room. Of one that is not queued, `offered` has it again.
    private func queue(_ offered: inout MachMessage?, until deadline: MonotonicInstant) throws(PortError) {
        let requester = offered?.replyTarget?.receiver
        guard let sender = try enqueue(&offered, orWaiting: .ofThread()) else { return }
        var mayRecycle = false
        if let requester {
            // Not recycled: the thread that ends the wait of a request may still be about to wake it.
            try requester.waitForRoom(until: deadline, toAsk: 0, waking: { sender.wake() }) { sender.wait(until: $0) }
        } else {
            mayRecycle = sender.wait(until: deadline)
        }
        do throws(PortError) {
            try stopWaiting(sender, PortError(.sendTimedOut))
        } catch {
            offered = sender.removeMessage()
            throw error
        }
        if mayRecycle { sender.recycle() }
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError)
    {
        try checkProcess()
        var offered: MachMessage? = message
        let made: BlockedSender?
        do throws(PortError) {
            made = try enqueue(&offered, orWaiting: wait.mayWait ? BlockedSender(.task(wait)) : nil)
        } catch {
            guard error.code == .deadName, let successor, let message = offered else { throw error }
            return try await successor.destination.send(message, waiting: wait)
        }
        guard let sender = made else { return }
        var failure = PortError(.deadName)
        while state.withLock({ $0.mailbox.isWaiting(sender) }) {
            do throws(PortError) {
                try await wait.wait()
            } catch {
                failure = error
                break
            }
        }
        do throws(PortError) {
            try stopWaiting(sender, failure)
        } catch {
            guard error.code == .deadName, let successor, let message = sender.removeMessage() else { throw error }
            try await successor.destination.send(message, waiting: wait)
        }
    }

    /// Queues a message; without room, the sender waits. It is made only then, and without the lock.
    ///
    /// - Returns: the sender, if it waits.
    private func enqueue(
        _ offered: inout MachMessage?, orWaiting makeSender: @autoclosure () -> BlockedSender?
    ) throws(PortError) -> BlockedSender? {
        var admission = admit(&offered)
        if case .full = admission, let sender = makeSender() {
            admission = admit(&offered, waiting: sender)
            if case .wait = admission { return sender }
            sender.recycle()
        }
        switch admission {
        case .accepted: return nil
        case .dead: throw PortError(.deadName)
        case .full, .wait: throw PortError(.sendTimedOut)
        }
    }

    /// Ends a sender's wait for room.
    ///
    /// - Throws: when its message was not queued: `deadName` when the port has ended, otherwise `failure`.
    private func stopWaiting(_ sender: BlockedSender, _ failure: PortError) throws(PortError) {
        let (stillWaited, isDead) = state.withLock { state in
            (state.mailbox.stopWaiting(sender), state.mailbox.isDead)
        }
        // When the port dies, waiting senders stay in the list: their messages were not queued.
        if stillWaited { throw isDead ? PortError(.deadName) : failure }
    }

    /// Queues a message, and signals the receivers when they may be asleep. Moves it out of `offered` when it is queued
    /// or its sender waits: a wait that times out does not give it back.
    func admit(
        _ offered: inout MachMessage?, exceedingLimit: Bool = false, waiting sender: BlockedSender? = nil
    ) -> MailboxState.Admission {
        var hasRoom = false
        return admit(&offered, exceedingLimit, sender, &hasRoom)
    }

    /// Queues a message for which there was room when it was read from its socket; `hasRoom` is set to whether there is
    /// room for another.
    ///
    /// - Returns: whether it was queued: false when the port is dead.
    func admitFromSocket(_ offered: inout MachMessage?, _ hasRoom: inout Bool, _ credit: ReceivedCredit?) -> Bool {
        if isInherited { return false }
        return if case .accepted = admitHere(&offered, true, nil, &hasRoom, credit) { true } else { false }
    }

    private func admit(
        _ offered: inout MachMessage?, _ exceedingLimit: Bool, _ sender: BlockedSender?, _ hasRoom: inout Bool
    ) -> MailboxState.Admission {
        isInherited ? .dead : admitHere(&offered, exceedingLimit, sender, &hasRoom, nil)
    }

    /// `admit` for a port that is known to be this process's. Inlined: a sender of this process has no credit to count.
    @inline(__always)
    private func admitHere(
        _ offered: inout MachMessage?, _ exceedingLimit: Bool, _ sender: BlockedSender?, _ hasRoom: inout Bool,
        _ credit: ReceivedCredit?
    ) -> MailboxState.Admission {
        if let interception, offered?.envelope.hasReplyRight == true, let message = offered, !isDead,
            interception.intercepts(message)
        {
            message.replyTarget?.handlerDidEnd()
            if let credit { didReceiveUnqueued(credit) }
            return .accepted(wasEmpty: false)
        }
        // Set only where there is something to do: a returned value is copied, and that counts references.
        var action: AdmissionAction?
        let admission = state.withLock { state in
            let admission = state.mailbox.admit(&offered, exceedingLimit: exceedingLimit, waiting: sender)
            if case .accepted(let wasEmpty) = admission {
                let isRare = state.hasColdState || readsAhead
                if wasEmpty || isRare {
                    action = AdmissionAction(
                        sources: wasEmpty && !state.isReceivedExclusively ? state.sources : SourceList(),
                        rare: isRare ? (state.nextTask(), readsAhead ? state.mailbox.removeDropped() : []) : nil)
                }
                if let credit { state.didReceiveOne(credit) }
                if exceedingLimit { hasRoom = state.mailbox.hasRoomForSockets }
            }
            return admission
        }
        action.take()?.follow()
        switch admission {
        case .full, .wait: checkCredits()
        case .accepted, .dead: break
        }
        return admission
    }

    /// What queueing a message requires once the lock is released; nil where that is nothing, the usual case.
    private struct AdmissionAction: ~Copyable {
        /// The sources to signal, because the queue was empty.
        let sources: SourceList
        /// The task to wake, and the messages that the policy dropped; nil at a port that has neither.
        let rare: (task: TaskWaiter?, dropped: [MachMessage])?

        consuming func follow() {
            sources.ring()
            guard let rare else { return }
            rare.task?.wake()
            for message in rare.dropped { message.replyTarget?.bounce(PortError(.messageDropped)) }
        }
    }
}

// MARK: - Room

// A sender that finds a full queue spins for a moment, to see whether its receiver is at work, before it sleeps. A
// receiver that dequeues one message at a time would otherwise admit and wake one sender for each: a sleep and a
// wake-up for each message. So the sender continues when half of the queue is free; the other half keeps the receiver
// busy until then.
extension LocalPort {
    /// Spins until there is room, or sleeping is the better wait.
    func spinForRoom(until deadline: MonotonicInstant) {
        guard var count = state.withLock({ $0.mailbox.countWithoutRoom }) else { return }
        var uselessChecks = 0
        ProcessorAllowance.shared.spin(
            until: min(deadline, .after(Tuning.longestSpin)), pauses: Tuning.pausesBetweenChecks
        ) {
            guard let (newCount, limit) = state.withLock({ $0.mailbox.fill }), newCount > limit / 2 else { return true }
            uselessChecks = newCount < count ? 0 : uselessChecks + 1
            count = newCount
            return uselessChecks == Tuning.checksWithoutProgress
        }
    }
}

extension MailboxState {
    /// How many messages wait, when a new sender would be the first to wait for room; nil when it finds room, other
    /// senders wait, or the port is dead.
    var countWithoutRoom: Int? {
        mutating get { isDead || hasRoom || waitingCount > 0 ? nil : queue.count }
    }

    /// How many messages wait, and how many may; nil when the port is dead or senders wait.
    var fill: (count: Int, limit: Int)? {
        isDead || waitingCount > 0 ? nil : (queue.count, limit)
    }
}

// MARK: - Peers

extension LocalPort.State {
    /// How many slots the processes share; nil when the policy makes room for each message.
    var sharedQueueLimit: Int? { mailbox.policy == .refuse ? mailbox.limit : nil }
}

extension LocalPort {
    /// Applies a changed queue limit to what the processes share.
    func shareQueue() {
        let sockets = state.withLock { state in
            let queueLimit = state.sharedQueueLimit
            state.coldState.sockets?.quotas.withLock { $0.queueLimit = queueLimit }
            return state.coldState.sockets
        }
        sockets?.resume()
    }

    var peerRules: PeerConfiguration { state.withLock { $0.coldState.rules } ?? .standard }

    /// Sets the policy: the one before admits no client from now on. Clients that waited to be asked about are accepted now,
    /// if the program need not be asked any more.
    func setPeerPolicy(_ policy: PeerPolicy) {
        if isInherited { return }
        func change() { changePeerRules { PeerConfiguration(policy: policy, limits: $0.limits) } }
        guard let sockets else { return change() }
        sockets.accepting.withLock { _ in change() }
        sockets.background.object?.acceptLater()
    }

    /// Changes the peer rules. A dead port has none.
    func changePeerRules(_ body: (PeerConfiguration) -> PeerConfiguration) {
        if isInherited { return }
        let sockets = state.withLock { state -> PortSockets? in
            if state.mailbox.isDead { return nil }
            let rules = body(state.coldState.rules ?? .standard)
            state.coldState.rules = rules
            state.coldState.sockets?.quotas.withLock { $0.limits = rules.limits }
            return state.coldState.sockets
        }
        sockets?.resume()
    }
}
