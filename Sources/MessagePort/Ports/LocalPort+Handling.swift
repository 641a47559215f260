// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    /// A number for a source that will take the turn.
    func makeGeneration() -> UInt64 {
        state.withLock { $0.ownership.makeNumber() }
    }

    /// Gives the turn to the source with this number.
    func giveOwnership(to number: UInt64) {
        let sources = state.withLock { state in
            state.mailbox.revokeLease()
            state.ownership.give(to: number)
            return state.sources
        }
        sources.ring()
    }

    /// Whether a source has a message to handle.
    func hasMessage(inGeneration number: UInt64) -> Bool {
        state.withLock { $0.hasMessage(inGeneration: number) }
    }

    /// Takes the oldest message for a handler, whose end `endHandling` is told.
    ///
    /// - Parameters:
    ///   - number: the source's number.
    ///   - loop: the loop on which the handler runs.
    ///   - batch: set to what the handler may take without the port's lock after that.
    /// - Returns: nil when there is none, or it is not this source's turn.
    func dequeue(inGeneration number: UInt64, on loop: ThreadRunLoop, _ batch: inout MessageBatch?) -> MachMessage? {
        let handler = HandlersUnderWay.Handler(loop: loop, generation: number)
        if !readsAhead, let message = dequeueMessage(for: handler, &batch) { return message }
        return dequeueAfterPolling(for: handler, &batch)
    }

    /// As above, after a look at the sockets.
    private func dequeueAfterPolling(for handler: HandlersUnderWay.Handler, _ batch: inout MessageBatch?)
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

    /// Handles a message, and the next ones as long as the loop goes on with this port.
    ///
    /// - Returns: whether there was one, a new connection alone is none; and whether there are more.
    func handleMessages(
        inGeneration number: UInt64, on loop: ThreadRunLoop, while beginNextPass: () -> Bool,
        _ handle: (MachMessage) -> Void
    ) -> SourceOutcome {
        var batch: MessageBatch?
        // Functions, so that each message is gone before the next is taken, with what it alone holds.
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
                    hasBegunPass = true  // somebody has had the rest put back
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

    /// So long at most the sender of a stream is given: nine messages or so, for one look of ours.
    private static let timeForMore = Duration.microseconds(1)

    /// Gives the sender of a stream, all of which was handled, a moment to send more: who claims each message by itself takes the
    /// lock as often as the sender, and both wait for it.
    private func waitForMore() {
        let end = MonotonicInstant.after(Self.timeForMore)
        repeat {
            for _ in 0..<16 { sysPause() }
        } while MonotonicInstant.now < end
    }

    /// A handler is over. The sources that had to wait for it go on.
    ///
    /// - Returns: whether its source has another message to handle.
    @discardableResult
    func endHandling(_ number: UInt64, on loop: ThreadRunLoop) -> Bool {
        var held: (sources: SourceList, sockets: PortSockets?)?
        let hasMessage = state.withLock { state in
            state.handlers.remove(HandlersUnderWay.Handler(loop: loop, generation: number))
            state.mailbox.endLease()
            if state.ownership.end(number) { held = (state.sources, state.openedSockets) }
            return state.hasMessage(inGeneration: number)
        }
        if let held { resumeSources(held.sources, held.sockets) }
        return hasMessage
    }

    /// Nothing holds the sources up any more.
    private func resumeSources(_ sources: SourceList, _ sockets: PortSockets?) {
        if let sockets { for source in sources.all { source.watchSoon(pollable: sockets.rawValue) } }
        sources.ring()
    }

    /// Has a source that must wait for the end of a handler not look at the sockets until then: they may stay readable.
    func pauseWhileBlocked(_ source: RunLoopSource) {
        let sockets = state.withLock { $0.ownership.isAwaitingOlderHandlers ? $0.extras.sockets : nil }
        guard let sockets else { return }
        try? source.watch(pollable: nil)
        if state.withLock({ !$0.ownership.isAwaitingOlderHandlers }) { source.watchSoon(pollable: sockets.rawValue) }
    }
}

extension LocalPort {
    /// The source with this number looks at one socket, and takes what comes, unless it is another's turn.
    func beginExclusiveReceive(inGeneration number: UInt64) {
        state.withLock { $0.isReceivedExclusively = $0.ownership.mayBegin(number) }
    }

    /// It does not take anything after all.
    func cancelExclusiveReceive() {
        state.withLock { $0.endExclusiveReceive() }?.ring()
    }
}

extension LocalPort.State {
    /// The source has taken what it could.
    ///
    /// - Returns: the sources to ring, because there is more.
    mutating func endExclusiveReceive() -> SourceList? {
        if !isReceivedExclusively { return nil }
        isReceivedExclusively = false
        return mailbox.queue.isEmpty ? nil : sources
    }

    fileprivate func hasMessage(inGeneration number: UInt64) -> Bool {
        !mailbox.queue.isEmpty && ownership.mayBegin(number)
    }
}

// MARK: - Taking

/// What is to be done because a message was taken from a port's queue; mostly nothing, and then there is none.
struct DequeueAction: Sendable {
    /// The sender whose message has got the place that became free.
    var sender: BlockedSender?
    /// The task to wake, because another message waits: perhaps that sender's.
    var task: WaitingTask?
    /// Whoever wanted to know of a free place.
    var notices: [LoopNotification<SendPossibility>] = []
    /// Whether the place is kept for a message in the sockets, which must be looked at.
    var mustPollSockets = false
    /// Whether it is to be shown to those who watch.
    var isWatched = false
}

extension LocalPort.State {
    /// The address under which the port can be reached.
    var liveAddress: PortAddress? { mailbox.isDead ? nil : extras.address }

    /// The sockets, if it has some: told without a look at all the rest that it may have.
    var openedSockets: PortSockets? { hasExtras ? extras.sockets : nil }

    /// Gives the oldest messages to a handler that is under way, the only one.
    ///
    /// - Parameter dequeueLimit: so many messages may be taken before the sockets are looked at; those of the claim count as taken.
    /// - Returns: the claim; nil when messages are to be taken one by one.
    mutating func leaseBatch(pollingAfter dequeueLimit: Int) -> MessageBatch? {
        guard handlers.isOne, !ownership.isAwaitingOlderHandlers else { return nil }
        if !hasExtras { return mailbox.leaseBatch() }
        guard let most = extras.dequeuesUntilPoll(pollingAfter: dequeueLimit),
            let batch = mailbox.leaseBatch(atMost: most)
        else { return nil }
        extras.dequeuesSincePoll += batch.remaining
        return batch
    }

    /// Takes the oldest message.
    ///
    /// - Parameters:
    ///   - handler: the number of the source that takes it for a handler, and the loop; nil for other receivers.
    ///   - dequeueLimit: so many messages may be taken before the sockets are looked at.
    ///   - action: is set to what is to be done when the lock is free.
    /// - Returns: nil when there is none, or it is not the source's turn.
    mutating func dequeue(
        for handler: HandlersUnderWay.Handler?, pollingAfter dequeueLimit: Int, _ action: inout DequeueAction?
    ) -> MachMessage? {
        if let handler, !ownership.mayBegin(handler.generation) { return nil }
        let mustPollSockets = hasExtras && extras.mustPollSockets(after: dequeueLimit)
        var sender: BlockedSender?
        guard let message = mailbox.dequeue(reservingSlot: mustPollSockets, admitting: &sender) else { return nil }
        if let handler {
            ownership.begin()
            handlers.append(handler)
        }
        if hasExtras || mailbox.mayBeCrowded {
            action = DequeueAction(
                sender: sender, task: nextTask(), notices: mailbox.removeDueRoomNotices(),
                mustPollSockets: mustPollSockets,
                isWatched: hasExtras && !extras.watchers.isEmpty)
        }
        return message
    }
}

// What is asked for each message, asked of the extras themselves: from outside they would be copied to look at one of them.
extension LocalPort.Extras {
    /// How many messages may be taken before the sockets have to be looked at; nil when others have to be told of each.
    fileprivate func dequeuesUntilPoll(pollingAfter dequeueLimit: Int) -> Int? {
        if doorbell != nil || !waitingTasks.isEmpty || !watchers.isEmpty { return nil }
        if sockets == nil { return .max }
        return socketsWait || dequeuesSincePoll >= dequeueLimit ? nil : dequeueLimit - dequeuesSincePoll
    }

    /// Whether the sockets must be looked at: after so many messages, or by turns while their messages find no room.
    fileprivate mutating func mustPollSockets(after dequeueLimit: Int) -> Bool {
        if sockets == nil { return false }
        dequeuesSincePoll += 1
        if socketsWait { isNextSlotForSockets.toggle() }
        return dequeuesSincePoll >= dequeueLimit || socketsWait && isNextSlotForSockets
    }

    /// Keeps the doorbell in step with the queue.
    func updateDoorbell(_ mailbox: borrowing MailboxState) { doorbell?.match(mailbox) }

    /// The task to wake, because a message waits.
    mutating func nextTask() -> WaitingTask? { waitingTasks.isEmpty ? nil : waitingTasks.removeFirst() }
}

// MARK: - Bursts

extension LocalPort {
    /// Whether several messages that cannot be answered may be queued at once: not where each may have others dropped.
    var acceptsBatches: Bool { !readsAhead }

    /// Keeps places in the queue for messages that are about to be taken out of a ring, until `fillReserved`.
    ///
    /// - Returns: how many.
    func reserveRoom(atMost most: Int) -> Int {
        state.withLock { $0.mailbox.reserveRoom(atMost: most) }
    }

    /// Queues messages in the places that were reserved for them, and rings the receivers when they may be asleep. A dead port
    /// leaves them where they are.
    ///
    /// - Parameters:
    ///   - messages: the messages; afterwards there are none.
    ///   - byteCount: how many bytes they have.
    /// - Returns: whether there is room for another.
    func fillReserved(by messages: inout MessageBuffer, byteCount: Int) -> Bool {
        // Set where there is something: what is returned is copied, and that counts references.
        var sources = SourceList()
        var tasks: [WaitingTask] = []
        let hasRoom = state.withLock { state in
            let count = messages.count
            guard let wasEmpty = state.mailbox.fillReserved(by: &messages, byteCount: byteCount) else { return false }
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

/// The handlers of a port that are under way: mostly none or one, which lies in place. Not generic, so that nothing
/// generic of another module is called for each message.
enum HandlersUnderWay: Sendable {
    /// A handler, known by the loop on which it runs and the number of its source.
    @safe struct Handler: Sendable {
        // SAFETY: the handler runs on the loop's thread, which keeps the loop, and is taken out of here before it
        // returns. Whoever looks it up does so under the port's lock, and retains it before that is free. To count
        // references for each message costs as much as its place in the queue.
        unowned(unsafe) let loop: ThreadRunLoop
        let generation: UInt64
    }

    case none
    case one(Handler)
    case many([Handler])

    var isOne: Bool {
        if case .one = self { true } else { false }
    }

    var all: [Handler] {
        switch self {
        case .none: []
        case .one(let handler): [handler]
        case .many(let handlers): handlers
        }
    }

    /// Whether no source with another number has begun any of them.
    func areAll(of generation: UInt64) -> Bool {
        switch self {
        case .none: true
        case .one(let handler): handler.generation == generation
        case .many(let handlers): handlers.allSatisfy { $0.generation == generation }
        }
    }

    mutating func append(_ handler: Handler) {
        switch self {
        case .none: self = .one(handler)
        case .one(let first): self = .many([first, handler])
        case .many(var handlers):
            self = .none  // so that the list is changed in place
            handlers.append(handler)
            self = .many(handlers)
        }
    }

    /// Takes out the last of those with this number on this loop.
    mutating func remove(_ handler: Handler) {
        func isWanted(_ other: Handler) -> Bool {
            unsafe other.generation == handler.generation && other.loop === handler.loop
        }
        switch self {
        case .none: break
        case .one(let only):
            if isWanted(only) { self = .none }
        case .many(var handlers):
            guard let index = handlers.lastIndex(where: isWanted) else { return }
            handlers.remove(at: index)
            // A claim may be made again when one is left.
            self = handlers.count == 1 ? .one(handlers[0]) : .many(handlers)
        }
    }
}
