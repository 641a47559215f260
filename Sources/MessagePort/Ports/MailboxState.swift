// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A port's bounded queue, and the senders that wait for room in it: decides, does nothing else. It cannot be copied: what
/// looks at a part of it is never a copy of the whole.
struct MailboxState: ~Copyable {
    /// What became of a message that was to be queued.
    enum Admission {
        /// It is queued; `wasEmpty` says whether a receiver may be asleep.
        case accepted(wasEmpty: Bool)
        /// The queue is full; the message will be queued in its turn, and the waiter woken then.
        case wait(BlockedSender)
        /// The queue is full, and the sender does not want to wait.
        case full
        /// The port is gone.
        case dead
    }

    /// What a port has whose queue was full.
    private struct Crowd: Blankable, ~Copyable {
        static let blank = RareBox<Crowd>()
        var senders: [BlockedSender] = []
        var roomNotices: [LoopNotification<SendPossibility>] = []
        /// How many free places are kept for messages that wait in sockets.
        var slotsReservedForSockets = 0
        /// What the policy has dropped and nobody has bounced yet, and how many messages were dropped in all.
        var dropped: [MachMessage] = []
        var droppedCount = 0
        /// Whether nobody waits for room.
        var isUncontended: Bool { senders.isEmpty && roomNotices.isEmpty && slotsReservedForSockets == 0 }
    }

    private(set) var queue = MessageQueue()
    // These two lie in what the queue leaves of a word.
    private var storedLimit: UInt16
    private var storedHighWater: UInt32 = 0
    /// How many messages have come into the queue, and how many bytes they had.
    private(set) var messageCount = 0
    private(set) var byteCount = 0
    private var rareCrowd = Rare<Crowd>()
    private var crowd: Crowd {
        @inline(__always) _read { yield rareCrowd.value }
        @inline(__always) _modify { yield &rareCrowd.value }
    }
    let policy: QueuePolicy
    private(set) var isDead = false
    // These two lie in what the two before leave of a word.
    /// How many places are kept for messages that are being taken out of rings.
    private var reservedSlots: UInt16 = 0
    /// How many messages in the queue came through send-once rights.
    private var replyCount: Int32 = 0

    init(limit: Int, policy: QueuePolicy = .refuse) {
        storedLimit = UInt16(limit)
        self.policy = policy
    }

    var limit: Int { Int(storedLimit) }

    /// The most messages that waited at once since this was last reset.
    var highWater: Int { Int(storedHighWater) }

    /// Whether its queue may have been full; told without a look at the rest.
    var mayBeCrowded: Bool { !rareCrowd.isBlank }

    /// How many senders wait for room.
    var waitingCount: Int { crowd.senders.count }

    /// How many messages were dropped: by the policy, or because they were too large for the port.
    var droppedCount: Int { crowd.droppedCount }

    /// How many messages that wait in sockets may be queued now; zero when the port is gone.
    var room: Int {
        if isDead { return 0 }
        return policy == .refuse ? max(0, openLimit - queue.count) : limit
    }

    /// Whether that is more than zero: mostly told without a look at what another thread takes.
    var hasRoomForSockets: Bool {
        mutating get { !isDead && (policy != .refuse || queue.isShorter(than: openLimit)) }
    }

    /// What the limit leaves to those for whom nothing is reserved; a limit that has been lowered perhaps less than nothing.
    private var openLimit: Int { limit - Int(reservedSlots) }

    /// Whether a sender of this process that comes now finds room.
    var hasRoom: Bool {
        mutating get {
            if policy != .refuse { return true }
            if rareCrowd.isBlank { return queue.isShorter(than: openLimit) }
            return crowd.senders.isEmpty && queue.isShorter(than: openLimit - crowd.slotsReservedForSockets)
        }
    }

    /// Queues a message; `patience` says how its sender waits for room. What the policy drops for it is in `removeDropped`.
    ///
    /// What came through a send-once right (`MachMessage.cameByReplyRight`) is not for the policy: it drops nothing, and is
    /// not dropped. With `exceedingLimit` the message needs no room: a reply, or one for which the sockets have found it.
    ///
    /// The message is taken when it is queued, or its sender is put in line. It is moved: to copy it counts references.
    mutating func admit(
        _ offered: inout MachMessage?, exceedingLimit: Bool = false, waiting patience: BlockingMode = .never
    ) -> Admission {
        if isDead { return .dead }
        var isAdmitted = exceedingLimit || hasRoom
        if !isAdmitted, patience.mayWait {
            // Who is to wait must know that somebody will make room: what is claimed is taken without a word.
            queue.revokeLease()
            isAdmitted = hasRoom
        }
        guard isAdmitted else {
            guard let sender = BlockedSender.make(&offered, patience) else { return .full }
            crowd.senders.append(sender)
            return .wait(sender)
        }
        let wasEmpty = queue.isEmpty
        guard let message = offered.take() else { return .accepted(wasEmpty: wasEmpty) }
        if policy != .refuse, !message.cameByReplyRight { makeRoomByPolicy() }
        append(message)
        return .accepted(wasEmpty: wasEmpty)
    }

    private mutating func append(_ message: consuming MachMessage) {
        messageCount &+= 1
        byteCount &+= message.parts.byteCount
        if message.cameByReplyRight { replyCount += 1 }
        queue.append(message)
        noteHighWater()
    }

    private mutating func noteHighWater() {
        if queue.isShorter(than: highWater + 1) { return }
        // A handler may have taken some of them meanwhile.
        storedHighWater = UInt32(clamping: max(highWater, queue.count))
    }

    private mutating func makeRoomByPolicy() {
        let most =
            switch policy {
            case .refuse: Int.max
            case .dropOldest: limit - 1
            case .keepLatest: 0
            }
        while queue.count - Int(replyCount) > most, let oldest = queue.removeFirst(where: { !$0.cameByReplyRight }) {
            crowd.dropped.append(oldest)
            crowd.droppedCount += 1
        }
    }

    /// Keeps places for messages that are about to be taken out of a ring, until `fillReserved`.
    ///
    /// - Returns: how many: none when there is no room, or the port is dead.
    mutating func reserveRoom(atMost most: Int) -> Int {
        let slots = min(most, room)
        reservedSlots += UInt16(slots)
        return slots
    }

    /// Queues messages in the places that were reserved for them, unless the port is dead. None of them is a reply.
    ///
    /// - Parameters:
    ///   - messages: the messages; afterwards there are none.
    ///   - bytes: how many bytes they have.
    /// - Returns: whether the queue was empty; nil when the port is dead, and the messages stay where they are.
    mutating func fillReserved(by messages: inout MessageBuffer, byteCount bytes: Int) -> Bool? {
        let count = messages.count
        reservedSlots -= UInt16(count)
        if isDead { return nil }
        let wasEmpty = queue.isEmpty
        messageCount &+= count
        byteCount &+= bytes
        queue.append(allOf: &messages)
        noteHighWater()
        return wasEmpty
    }

    /// Takes the oldest message, and queues that of the sender that has waited longest for room.
    ///
    /// - Parameters:
    ///   - reservingSlot: the place that becomes free is kept, for a message that waits in a socket, until
    ///   `endSlotReservation`.
    ///   - sender: the sender whose wait is over, if there is one.
    /// - Returns: the message; nil when there is none.
    mutating func dequeue(reservingSlot: Bool = false, admitting sender: inout BlockedSender?) -> MachMessage? {
        guard var message = queue.popFirst() else { return nil }
        if message.cameByReplyRight {
            replyCount -= 1
            message.cameByReplyRight = false  // the receiver may send it on
        }
        if reservingSlot { crowd.slotsReservedForSockets += 1 }
        sender = admitNextSender()
        return message
    }

    /// Gives the oldest messages to a handler's thread, unless somebody has to know of each message that is taken.
    mutating func leaseBatch(atMost limit: Int = .max) -> MessageBatch? {
        guard policy == .refuse, replyCount == 0, rareCrowd.isBlank || crowd.isUncontended else { return nil }
        return queue.leaseBatch(atMost: limit)
    }

    /// Takes back what a handler's thread has claimed: from now on somebody has to know of each message that is taken.
    mutating func revokeLease() {
        queue.revokeLease()
    }

    /// A handler is over: what its thread has claimed and not taken is not claimed any more.
    mutating func endLease() {
        queue.endLease()
    }

    /// Nobody looks into the sockets any more for a message for the kept place: what is left goes to those who wait.
    ///
    /// - Returns: the senders whose wait is over, and whether the queue was empty before.
    mutating func endSlotReservation() -> (senders: [BlockedSender], wasEmpty: Bool) {
        crowd.slotsReservedForSockets -= 1
        return admitSenders()
    }

    /// Queues the message of the sender that has waited longest, if there is room. A dead port lets nobody in.
    private mutating func admitNextSender() -> BlockedSender? {
        if isDead || rareCrowd.isBlank || crowd.senders.isEmpty
            || queue.count + crowd.slotsReservedForSockets >= openLimit
        {
            return nil
        }
        let sender = crowd.senders.removeFirst()
        if let message = sender.removeMessage() { append(message) }
        return sender
    }

    private mutating func admitSenders() -> (senders: [BlockedSender], wasEmpty: Bool) {
        let wasEmpty = queue.isEmpty
        var senders: [BlockedSender] = []
        while let sender = admitNextSender() { senders.append(sender) }
        return (senders, wasEmpty)
    }

    /// Changes how many messages may wait. A lower limit drops nothing; a higher one lets waiting senders in.
    ///
    /// - Returns: the senders whose wait is over, and whether the queue was empty before.
    mutating func setLimit(_ limit: Int) -> (senders: [BlockedSender], wasEmpty: Bool) {
        storedLimit = UInt16(limit)
        return admitSenders()
    }

    /// From now on the most messages that wait are counted anew.
    ///
    /// - Returns: the old count.
    mutating func resetHighWater() -> Int {
        defer { storedHighWater = UInt32(clamping: queue.count) }
        return highWater
    }

    /// A message was too large for the port, and nothing of it was kept.
    mutating func didDropTooLarge() {
        crowd.droppedCount += 1
    }

    /// The messages that the policy has dropped and nobody has bounced yet.
    mutating func removeDropped() -> [MachMessage] {
        if rareCrowd.isBlank || crowd.dropped.isEmpty { return [] }
        defer { crowd.dropped = [] }
        return crowd.dropped
    }

    /// Whether a sender still waits, and may still get a place.
    func isWaiting(_ sender: BlockedSender) -> Bool {
        !isDead && crowd.senders.contains { $0 === sender }
    }

    /// A sender does not wait any more.
    ///
    /// - Returns: whether it still did: then its message was not queued.
    mutating func stopWaiting(_ sender: BlockedSender) -> Bool {
        guard let index = crowd.senders.firstIndex(where: { $0 === sender }) else { return false }
        crowd.senders.remove(at: index)
        return true
    }

    /// Ends the port.
    ///
    /// - Returns: the messages that nobody will receive, and the senders that wait; nil when it had ended before.
    mutating func die() -> (bounced: [MachMessage], senders: [BlockedSender])? {
        if isDead { return nil }
        isDead = true
        replyCount = 0
        return (queue.removeAll(), crowd.senders)
    }
}

extension MailboxState {
    /// Notes who wants to know when there is room.
    ///
    /// - Returns: what to tell at once; nil when there is no room now.
    mutating func awaitRoom(_ notice: LoopNotification<SendPossibility>) -> SendPossibility? {
        if isDead { return .deadName }
        if !hasRoom { queue.revokeLease() }
        if hasRoom { return .possible }
        crowd.roomNotices.removeAll { $0.isOver }  // those whose loops have ended meanwhile
        crowd.roomNotices.append(notice)
        return nil
    }

    /// The notices that are due, because there is room or the port is gone.
    mutating func removeDueRoomNotices() -> [LoopNotification<SendPossibility>] {
        guard !rareCrowd.isBlank, !crowd.roomNotices.isEmpty, isDead || hasRoom else { return [] }
        defer { crowd.roomNotices = [] }
        return crowd.roomNotices
    }
}

/// What a port does with a message for which its queue has no room.
///
/// A message of another process is queued when the port's messages are received; until then it lies in the connection.
/// So a sender of another process may find no room there, and waits or is told so, whatever the policy. The policy
/// chooses among all that has arrived: before a message is taken, what lies in the connections is read.
///
/// What comes through a send-once right (``MachPort/makeSendOnceRight()``), a reply or the notice that none will come,
/// is outside of it: it is always queued, drops nothing, and is never dropped, for each right brings exactly one
/// message.
public enum QueuePolicy: Hashable, Sendable {
    /// The sender waits until there is room, or is told that the queue is full. Nothing is lost.
    case refuse
    /// The oldest message in the queue makes room for the new one; a sender never waits. For logs and samples, where
    /// the latest few matter.
    case dropOldest
    /// The new message replaces all that wait; a sender never waits. For a state of which only the newest value
    /// matters.
    case keepLatest
}
