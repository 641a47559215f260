// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A sender that waits for room, with its message. Whoever makes room queues the message for it: so senders are served in
/// the order in which they came, and nobody who comes later is quicker.
final class WaitingSender: Sendable {
    let message: MachMessage  // immutable
    /// Set when the wait is over: `MailboxState.stopWaiting` then says how it ended.
    let event = ThreadEvent()

    init(_ message: MachMessage) {
        self.message = message
    }
}

/// A port's bounded queue, and the senders that wait for room in it: decides, does nothing else.
struct MailboxState {
    /// What became of a message that was to be queued.
    enum Admission {
        /// It is queued; `wasEmpty` says whether a receiver may be asleep.
        case accepted(wasEmpty: Bool)
        /// The queue is full; the message will be queued in its turn, and its event set then.
        case wait(WaitingSender)
        /// The queue is full, and the sender does not want to wait.
        case full
        /// The port is gone.
        case dead
    }

    private(set) var queue = MessageQueue()
    private(set) var limit: Int
    private(set) var isDead = false
    private var waitingSenders: [WaitingSender] = []

    init(limit: Int) {
        self.limit = limit
    }

    /// How many senders wait for room.
    var waitingCount: Int { waitingSenders.count }

    /// How many messages may still be queued; zero when the port is gone.
    var room: Int { isDead ? 0 : max(0, limit - queue.count) }

    /// Queues a message. A reply (`exceedingLimit`) needs no room.
    mutating func admit(_ message: MachMessage, exceedingLimit: Bool = false, mayWait: Bool = false) -> Admission {
        if isDead { return .dead }
        guard exceedingLimit || queue.count < limit else {
            guard mayWait else { return .full }
            let sender = WaitingSender(message)
            waitingSenders.append(sender)
            return .wait(sender)
        }
        let wasEmpty = queue.isEmpty
        queue.append(message)
        return .accepted(wasEmpty: wasEmpty)
    }

    /// Takes the oldest message, and queues that of the sender that has waited longest for room.
    ///
    /// - Returns: the message, and the sender whose wait is over.
    mutating func take() -> (message: MachMessage, sender: WaitingSender?)? {
        guard let message = queue.popFirst() else { return nil }
        guard queue.count < limit, !waitingSenders.isEmpty else { return (message, nil) }
        let sender = waitingSenders.removeFirst()
        queue.append(sender.message)
        return (message, sender)
    }

    /// A sender does not wait any more.
    ///
    /// - Returns: whether it still did: then its message was not queued.
    mutating func stopWaiting(_ sender: WaitingSender) -> Bool {
        guard let index = waitingSenders.firstIndex(where: { $0 === sender }) else { return false }
        waitingSenders.remove(at: index)
        return true
    }

    /// Ends the port.
    ///
    /// - Returns: the messages that nobody will receive, and the senders that wait; nil when it had ended before.
    mutating func die() -> (bounced: [MachMessage], senders: [WaitingSender])? {
        if isDead { return nil }
        isDead = true
        return (queue.removeAll(), waitingSenders)
    }
}
