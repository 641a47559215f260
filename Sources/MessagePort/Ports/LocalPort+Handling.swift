// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

extension LocalPort {
    /// A generation for a source that will take the ownership.
    func makeGeneration() -> UInt64 {
        state.withLock { $0.ownership.makeNumber() }
    }

    func giveOwnership(to number: UInt64) {
        let sources = state.withLock { state in
            state.mailbox.revokeLease()
            state.ownership.give(to: number)
            return state.sources
        }
        sources.ring()
    }

    func hasMessage(inGeneration number: UInt64) -> Bool {
        !isInherited && state.withLock { $0.hasMessage(inGeneration: number) }
    }

    /// Dequeues the oldest message for a handler, whose end `endHandling` records. The handler may take the messages of
    /// the batch next, without the port's lock.
    ///
    /// - Returns: nil when no message waits, or the source may not call the handler.
    func dequeue(inGeneration number: UInt64, on loop: ThreadRunLoop, _ batch: inout MessageBatch?) -> MachMessage? {
        let handler = ActiveHandlers.Handler(loop: loop, generation: number)
        if !readsAhead, let message = dequeueMessage(for: handler, &batch) { return message }
        return dequeueAfterPolling(for: handler, &batch)
    }

    private func dequeueAfterPolling(for handler: ActiveHandlers.Handler, _ batch: inout MessageBatch?)
        -> MachMessage?
    {
        var budget = receiveBudget
        if readsAhead {
            receiveAllFromSockets(&budget)
            if let message = dequeueMessage(for: handler, &batch) { return message }
        }
        _ = receiveFromSockets(&budget, forGeneration: handler.generation)
        return dequeueMessage(for: handler, &batch)
    }

    /// Handles a message, and the next ones as long as the loop stays with this port.
    ///
    /// - Returns: whether it handled a message, and whether more wait. A new connection alone is no message.
    func handleMessages(
        inGeneration number: UInt64, on loop: ThreadRunLoop, while beginNextPass: () -> Bool,
        _ handle: (MachMessage) -> Void
    ) -> SourceOutcome {
        var batch: MessageBatch?
        // Functions, so that each message is released before the next is dequeued.
        func handleQueued() -> Bool {
            guard let message = dequeue(inGeneration: number, on: loop, &batch) else { return false }
            handle(message)
            (consume message).recycleMemory()
            return true
        }
        func handleLeased(_ batch: MessageBatch) -> Bool {
            guard let message = batch.next() else { return false }
            handle(message)
            (consume message).recycleMemory()
            return true
        }
        guard handleQueued() else { return .nothing }
        while true {
            var hasBegunPass = false
            if let batch {
                while batch.remaining > 0 {
                    guard beginNextPass() else {
                        return SourceOutcome(hasHandled: true, isReady: endHandling(number, on: loop))
                    }
                    if handleLeased(batch) { continue }
                    hasBegunPass = true  // the lease was revoked
                }
                waitForMore()
            }
            let hasMore = endHandling(number, on: loop)
            guard hasMore, hasBegunPass || beginNextPass() else {
                return SourceOutcome(hasHandled: true, isReady: hasMore)
            }
            guard handleQueued() else { return .handled }
        }
    }

    /// Gives the sender of a stream, all of which was handled, a moment to send more. A receiver that leases each
    /// message by itself locks as often as the sender, and both wait for the lock. It is too short to ask first whether
    /// there are two processors.
    private func waitForMore() {
        let end = MonotonicInstant.after(Tuning.timeForMore)
        repeat {
            for _ in 0..<Tuning.pausesForMore { sysPause() }
        } while MonotonicInstant.now < end
    }

    /// Ends a handler. Sources that had to wait for it continue.
    ///
    /// - Returns: whether its source has another message to handle.
    @discardableResult
    func endHandling(_ number: UInt64, on loop: ThreadRunLoop) -> Bool {
        if isInherited { return false }  // the handler has forked, and this is the child
        var held: (sources: SourceList, sockets: PortSockets?)?
        let hasMessage = state.withLock { state in
            state.mailbox.endLease()
            let isLastOfOlder = state.ownership.end(ActiveHandlers.Handler(loop: loop, generation: number))
            if isLastOfOlder { held = (state.sources, state.openedSockets) }
            return state.hasMessage(inGeneration: number)
        }
        if let held {
            if let sockets = held.sockets {
                for source in held.sources.all { source.watchSoon(pollable: sockets.rawValue) }
            }
            held.sources.ring()
        }
        return hasMessage
    }

    /// Keeps a source that must wait for older handlers from watching the sockets until then.
    func pauseWhileBlocked(_ source: RunLoopSource) {
        func isBlocked() -> Bool { state.withLock { $0.ownership.isAwaitingOlderHandlers } }
        if isBlocked() { pause(source, while: isBlocked) }
    }

    /// Keeps a source from watching the sockets, which may stay readable, unless `isPaused` has ended meanwhile. What
    /// ends it later resumes the source.
    func pause(_ source: RunLoopSource, while isPaused: () -> Bool) {
        guard let sockets else { return }
        try? source.watch(pollable: nil)
        if !isPaused() { source.watchSoon(pollable: sockets.rawValue) }
    }

    /// Has a source watch the sockets again.
    func resume(_ source: RunLoopSource) {
        if let sockets { source.watchSoon(pollable: sockets.rawValue) }
    }
}

extension LocalPort {
    /// The source of this generation polls one socket and takes what comes, unless it may not call the handler.
    func beginExclusiveReceive(inGeneration number: UInt64) {
        state.withLock { $0.isReceivedExclusively = $0.ownership.mayBegin(number) }
    }

    /// The source takes nothing after all.
    func cancelExclusiveReceive() {
        state.withLock { $0.endExclusiveReceive() }?.ring()
    }
}

extension LocalPort.State {
    /// The source has taken what it could.
    ///
    /// - Returns: the sources to signal, because more messages wait.
    mutating func endExclusiveReceive() -> SourceList? {
        if !isReceivedExclusively { return nil }
        isReceivedExclusively = false
        return mailbox.queue.isEmpty ? nil : sources
    }

    @inline(__always)
    fileprivate func hasMessage(inGeneration number: UInt64) -> Bool {
        !mailbox.queue.isEmpty && !mailbox.isFrozen && ownership.mayBegin(number)
    }
}

// MARK: - Taking

extension LocalPort {
    func dequeueMessage() -> MachMessage? {
        var action: DequeueAction?
        var message = state.withLock { $0.dequeue(for: nil, pollingAfter: Tuning.dequeuesBetweenPolls, &action) }
        settle(&message, action)
        return message
    }

    /// Dequeues the oldest message for a handler, records the handler as under way, and leases a batch of the next
    /// messages if possible.
    func dequeueMessage(for handler: ActiveHandlers.Handler, _ batch: inout MessageBatch?) -> MachMessage? {
        var (action, missed) = (DequeueAction?.none, SourceList?.none)
        var message = state.withLock { state in
            // Assigned only where there is something to do: an assignment releases.
            defer { if state.isReceivedExclusively { missed = state.endExclusiveReceive() } }
            let taken = state.dequeue(for: handler, pollingAfter: Tuning.dequeuesBetweenPolls, &action)
            batch = taken == nil ? nil : state.leaseBatch(pollingAfter: Tuning.dequeuesBetweenPolls)
            return taken
        }
        missed?.ring()
        settle(&message, action)
        return message
    }

    /// Does what the dequeue requires. The message is changed in place: a copy costs as much as the rest.
    private func settle(_ message: inout MachMessage?, _ action: DequeueAction?) {
        if let action, action.isTapped, let message { show(message) }
        message?.noteDequeued()
        if let action { follow(action) }
    }

    private func follow(_ action: DequeueAction) {
        action.task?.wake()
        action.sender?.wake()
        for notice in action.notices { notice.notify(.possible) }
        if action.mustTimeGrants { timeGrants() }
        if action.mustPollSockets {
            receiveFromSockets()
            change { $0.endSlotReservation() }
        }
    }
}

/// What dequeueing a message requires; nil where that is nothing, the usual case.
private struct DequeueAction: Sendable {
    /// The sender whose message got the freed slot.
    var sender: BlockedSender?
    /// The task to wake, because another message waits: perhaps that sender's.
    var task: TaskWaiter?
    var notices: [LoopNotification<SendPossibility>] = []
    /// Whether the slot is reserved for a message in the sockets, which must be polled.
    var mustPollSockets = false
    /// Whether taps get a copy of the message.
    var isTapped = false
    /// Whether a timer must begin, after which what is free is granted.
    var mustTimeGrants = false
}

extension LocalPort.State {
    /// The address under which the port can be reached.
    var liveAddress: PortAddress? { mailbox.isDead ? nil : coldState.address }

    /// The sockets, if it has some; does not read the rest of the cold state.
    var openedSockets: PortSockets? { hasColdState ? coldState.sockets : nil }

    /// Leases the oldest messages to the only handler under way.
    ///
    /// - Parameter dequeueLimit: after this many messages the sockets must be polled; leased ones count as dequeued.
    /// - Returns: the lease; nil when messages must be dequeued one by one.
    mutating func leaseBatch(pollingAfter dequeueLimit: Int) -> MessageBatch? {
        guard ownership.handlers.isOne, !ownership.isAwaitingOlderHandlers else { return nil }
        if !hasColdState { return mailbox.leaseBatch() }
        guard let most = coldState.dequeuesUntilPoll(pollingAfter: dequeueLimit),
            let batch = mailbox.leaseBatch(atMost: most)
        else { return nil }
        coldState.dequeuesSincePoll += batch.remaining
        return batch
    }

    /// Dequeues the oldest message.
    ///
    /// - Parameters:
    ///   - handler: the handler that takes it: its source's generation, and its loop; nil for other receivers.
    ///   - dequeueLimit: after this many messages the sockets must be polled.
    ///   - action: set to what must be done after the lock is released.
    /// - Returns: nil when no message waits, or the source may not call the handler.
    fileprivate mutating func dequeue(
        for handler: ActiveHandlers.Handler?, pollingAfter dequeueLimit: Int, _ action: inout DequeueAction?
    ) -> MachMessage? {
        if let handler, !ownership.mayBegin(handler.generation) { return nil }
        var mustPollSockets = false
        if hasColdState {
            // The number of a connection that a sender has asked for waits behind a message that found no room.
            mustPollSockets =
                coldState.mustPollSockets(after: dequeueLimit) || coldState.socketsWait && mailbox.hasEarlyQuestions
            if mailbox.hasExhausted, let (index, owner) = mailbox.removeExhausted() {
                mailbox.grantMore(index, share: share(of: owner))
            }
        }
        var sender: BlockedSender?
        guard let message = mailbox.dequeue(reservingSlot: mustPollSockets, admitting: &sender) else { return nil }
        if let handler { ownership.begin(handler) }
        if hasColdState || mailbox.mayBeContended {
            action = DequeueAction(
                sender: sender, task: nextTask(), notices: mailbox.removeDueRoomNotices(),
                mustPollSockets: mustPollSockets,
                isTapped: hasColdState && coldState.isTapped, mustTimeGrants: mailbox.beginGrantTiming())
        }
        return message
    }
}

// Asked for each message, of the cold state itself: from outside they would be copied to read one member.
extension LocalPort.ColdState {
    /// How many messages may be dequeued until the sockets must be polled; nil when they must be dequeued one by one.
    fileprivate func dequeuesUntilPoll(pollingAfter dequeueLimit: Int) -> Int? {
        if doorbell != nil || !waitingTasks.isEmpty || isTapped { return nil }
        if sockets == nil { return .max }
        return socketsWait || dequeuesSincePoll >= dequeueLimit ? nil : dequeueLimit - dequeuesSincePoll
    }

    /// Whether the sockets must be polled: after `dequeueLimit` messages, or every other time while theirs find no
    /// room.
    fileprivate mutating func mustPollSockets(after dequeueLimit: Int) -> Bool {
        if sockets == nil { return false }
        dequeuesSincePoll += 1
        if socketsWait { isNextSlotForSockets.toggle() }
        return dequeuesSincePoll >= dequeueLimit || socketsWait && isNextSlotForSockets
    }

    func updateDoorbell(_ mailbox: borrowing MailboxState) { doorbell?.match(mailbox) }

    mutating func nextTask() -> TaskWaiter? { waitingTasks.isEmpty ? nil : waitingTasks.removeFirst() }
}

// MARK: - Batches

extension LocalPort {
    /// Whether several messages that cannot be answered may be queued at once: not where each may drop others.
    var acceptsBatches: Bool { !readsAhead }

    /// Reserves slots in the queue for messages that are about to be copied out of a ring, until `fillReserved`.
    ///
    /// - Returns: how many, and whether the connection should be granted more.
    func reserveRoom(atMost most: Int, over credit: ReceivedCredit?) -> (slots: Int, isLow: Bool) {
        state.withLock { $0.mailbox.reserveRoom(atMost: most, over: credit) }
    }

    /// Queues messages in their reserved slots, and signals the receivers when they may be asleep. `messages` is empty
    /// afterwards; a dead port leaves it unchanged.
    ///
    /// - Returns: whether there is room for another.
    func fillReserved(by messages: inout MessageBuffer, byteCount: Int, low credit: ReceivedCredit?) -> Bool {
        // Set only where there is something to do: a returned value is copied, and that counts references.
        var sources = SourceList()
        var tasks: [TaskWaiter] = []
        let hasRoom = state.withLock { state in
            let count = messages.count
            let filled = state.mailbox.fillReserved(by: &messages, byteCount: byteCount)
            guard let wasEmpty = filled else { return false }
            if let credit { state.grantMore(to: credit) }
            if wasEmpty, !state.isReceivedExclusively { sources = state.sources }
            while tasks.count < count, let task = state.nextTask() { tasks.append(task) }
            return state.mailbox.hasRoomForSockets
        }
        sources.ring()
        for task in tasks { task.wake() }
        return hasRoom
    }

    package func didDropTooLarge() {
        withMailbox(or: ()) { $0.didDropTooLarge() }
    }
}
