// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The queue of a port that moves to another process.
extension MailboxState {
    /// From now on nothing is dequeued, and only replies are queued. Senders wait.
    mutating func freeze() {
        queue.revokeLease()
        isFrozen = true
    }

    mutating func thaw() { isFrozen = false }

    /// Copies of all messages, in order.
    mutating func messages() -> [MachMessage] {
        let messages = queue.removeAll()
        for message in messages { queue.append(message) }
        return messages
    }

    /// What has been counted.
    var counts: PortSnapshot.Counts {
        PortSnapshot.Counts(
            messages: messageCount, bytes: byteCount, dropped: mayBeContended ? droppedCount : 0, highWater: highWater)
    }

    /// The port has left this process: ends the queue.
    ///
    /// - Returns: its messages; the senders of this process that wait, and the notices of room; and what is to be released
    ///   without the lock. Nil when the port has ended.
    mutating func leave() -> (
        messages: [MachMessage], senders: [BlockedSender], notices: [LoopNotification<SendPossibility>],
        others: ([BlockedSender], [EarlyQuestion])
    )? {
        if isDead { return nil }
        (isDead, isFrozen, replyCount) = (true, false, 0)
        let messages = queue.removeAll()
        if !mayBeContended { return (messages, [], [], ([], [])) }
        let (senders, questions) = (contention.senders, contention.earlyQuestions)
        contention.earlyQuestions = []
        // As where a port ends, those of this process stay in the list: their messages were not queued.
        contention.senders.removeAll { $0.request != nil }
        return (
            messages, senders.filter { $0.request == nil }, removeDueRoomNotices(),
            (senders.filter { $0.request != nil }, questions)
        )
    }

    /// Continues the queue of a port that has come from another process.
    mutating func resume(_ messages: [MachMessage], _ counts: PortSnapshot.Counts) {
        for message in messages { append(message) }
        (messageCount, byteCount) = (counts.messages, counts.bytes)
        storedHighWater = UInt32(clamping: max(highWater, counts.highWater))
        if counts.dropped > 0 { contention.droppedCount = counts.dropped }
    }
}
