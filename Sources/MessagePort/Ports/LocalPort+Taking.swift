// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// What is to be done because a message was taken from a port's queue; mostly nothing, and then there is none.
struct DequeueAction: Sendable {
    /// The sender whose message has got the place that became free.
    var sender: BlockedSender?
    /// The task to wake, because another message waits: perhaps that sender's.
    var task: WaitingTask?
    /// Whoever wanted to know of a free place.
    var notices: [LoopNotification<SendPossibility>] = []
    /// Whether the place is kept for a message in the sockets, which must be looked at.
    var mustLook = false
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
    /// - Parameter takes: so many messages may be taken before the sockets are looked at; those of the claim count as taken.
    /// - Returns: the claim; nil when messages are to be taken one by one.
    mutating func makeClaim(looksAfter takes: Int) -> MessageBatch? {
        guard handlers.isOne, !turns.isHeldUp else { return nil }
        if !hasExtras { return mailbox.makeClaim() }
        guard let most = extras.takesUntilNeeded(looksAfter: takes),
            let claim = mailbox.makeClaim(atMost: most)
        else { return nil }
        extras.takesSinceLook += claim.remaining
        return claim
    }

    /// Takes the oldest message.
    ///
    /// - Parameters:
    ///   - handler: the number of the source that takes it for a handler, and the loop; nil for other receivers.
    ///   - takes: so many messages may be taken before the sockets are looked at.
    ///   - sequel: is set to what is to be done when the lock is free.
    /// - Returns: nil when there is none, or it is not the source's turn.
    mutating func take(
        for handler: HandlersUnderWay.Handler?, looksAfter takes: Int, _ sequel: inout DequeueAction?
    ) -> MachMessage? {
        if let handler, !turns.mayBegin(handler.turn) { return nil }
        let mustLook = hasExtras && extras.mustLook(after: takes)
        var sender: BlockedSender?
        guard let message = mailbox.take(keepingPlace: mustLook, lettingIn: &sender) else { return nil }
        if let handler {
            turns.begin()
            handlers.append(handler)
        }
        if hasExtras || mailbox.mayBeCrowded {
            sequel = DequeueAction(
                sender: sender, task: nextTask(), notices: mailbox.takeRoomNotices(), mustLook: mustLook,
                isWatched: hasExtras && !extras.watchers.isEmpty)
        }
        return message
    }
}

// What is asked for each message, asked of the extras themselves: from outside they would be copied to look at one of them.
extension LocalPort.Extras {
    /// How many messages may be taken before the sockets have to be looked at; nil when others have to be told of each.
    fileprivate func takesUntilNeeded(looksAfter takes: Int) -> Int? {
        if bell != nil || !waitingTasks.isEmpty || !watchers.isEmpty { return nil }
        if sockets == nil { return .max }
        return socketsWait || takesSinceLook >= takes ? nil : takes - takesSinceLook
    }

    /// Whether the sockets must be looked at: after so many messages, or by turns while their messages find no room.
    fileprivate mutating func mustLook(after takes: Int) -> Bool {
        if sockets == nil { return false }
        takesSinceLook += 1
        if socketsWait { isSocketsTurn.toggle() }
        return takesSinceLook >= takes || socketsWait && isSocketsTurn
    }

    /// Keeps the doorbell in step with the queue.
    func matchBell(_ mailbox: borrowing MailboxState) { bell?.match(mailbox) }

    /// The task to wake, because a message waits.
    mutating func nextTask() -> WaitingTask? { waitingTasks.isEmpty ? nil : waitingTasks.removeFirst() }
}
