// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A port's bounded queue, and the senders that wait for room in it: decides, does nothing else.
struct MailboxState {
    /// What became of a message that was to be queued.
    enum Admission {
        /// It is queued; `wasEmpty` says whether a receiver may be asleep.
        case accepted(wasEmpty: Bool)
        /// The queue is full; try again after this event.
        case wait(ThreadEvent)
        /// The queue is full, and the sender does not want to wait.
        case full
        /// The port is gone.
        case dead
    }

    private(set) var queue = MessageQueue()
    private(set) var limit: Int
    private(set) var isDead = false
    private var waitingSenders: [ThreadEvent] = []

    init(limit: Int) {
        self.limit = limit
    }

    /// How many messages may still be queued; zero when the port is gone.
    var room: Int { isDead ? 0 : max(0, limit - queue.count) }

    /// Queues a message. A reply (`exceedingLimit`) needs no room.
    mutating func admit(_ message: MachMessage, exceedingLimit: Bool = false, mayWait: Bool = false) -> Admission {
        if isDead { return .dead }
        guard exceedingLimit || queue.count < limit else {
            guard mayWait else { return .full }
            let event = ThreadEvent()
            waitingSenders.append(event)
            return .wait(event)
        }
        let wasEmpty = queue.isEmpty
        queue.append(message)
        return .accepted(wasEmpty: wasEmpty)
    }

    /// Takes the oldest message, and the sender that has waited longest for room.
    mutating func take() -> (message: MachMessage, sender: ThreadEvent?)? {
        guard let message = queue.popFirst() else { return nil }
        guard queue.count < limit, !waitingSenders.isEmpty else { return (message, nil) }
        return (message, waitingSenders.removeFirst())
    }

    /// A sender no longer waits. When its turn had come already, the turn passes to the next.
    ///
    /// - Returns: the sender whose turn it now is.
    mutating func stopWaiting(_ event: ThreadEvent) -> ThreadEvent? {
        if let index = waitingSenders.firstIndex(where: { $0 === event }) {
            waitingSenders.remove(at: index)
            return nil
        }
        guard queue.count < limit, !waitingSenders.isEmpty else { return nil }
        return waitingSenders.removeFirst()
    }

    /// Ends the port.
    ///
    /// - Returns: the messages that nobody will receive, and the senders that wait; nil when it had ended before.
    mutating func die() -> (bounced: [MachMessage], senders: [ThreadEvent])? {
        if isDead { return nil }
        isDead = true
        defer { waitingSenders = [] }
        return (queue.removeAll(), waitingSenders)
    }
}
