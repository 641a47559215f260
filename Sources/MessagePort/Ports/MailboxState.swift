// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A port's bounded queue, and the senders that wait for room in it: decides, does nothing else. It is not copyable, so
/// that reading a part never copies the whole.
struct MailboxState: ~Copyable {
    enum Admission {
        /// It is queued; `wasEmpty` says whether a receiver may be asleep.
        case accepted(wasEmpty: Bool)
        /// The queue is full; the message will be queued in order, and the waiter woken then.
        case wait(BlockedSender)
        /// The queue is full, and the sender does not want to wait.
        case full
        /// The port is dead.
        case dead
    }

    /// State that only a port whose queue has been full has.
    struct Contention: ColdValue, ~Copyable {
        static let blank = ColdBox<Contention>()
        var senders: [BlockedSender] = []
        var roomNotices: [LoopNotification<SendPossibility>] = []
        /// How many free slots are reserved for messages that wait in sockets.
        var slotsReservedForSockets = 0
        /// Messages that the policy dropped and that are not bounced yet, and how many were dropped in total.
        var dropped: [MachMessage] = []
        var droppedCount = 0
        /// What connections of other processes may send.
        var credits = CreditTable()
        /// Questions for connections whose number has not come yet.
        var earlyQuestions: [EarlyQuestion] = []
        /// The connections over which senders have waited that have got a slot since.
        var grantedQuestions: Set<ObjectIdentifier> = []
        /// Whether a timer checks that what was granted is used.
        var isCheckingCredits = false
        /// Whether a sender found no room since the last check.
        var hasRefusedSender = false
        /// When what is free is granted to the first in line.
        var grantTiming = GrantPhase.none
        /// Whether no sender or notice waits for room.
        var isQuiet: Bool { senders.isEmpty && roomNotices.isEmpty }
        /// Whether no sender, notice or socket waits for room.
        var isUncontended: Bool { isQuiet && slotsReservedForSockets == 0 }
    }

    enum GrantPhase {
        /// When half of the queue is free.
        case none
        /// The same, or after a timer, which has to begin.
        case mustBegin
        /// The same; the timer runs.
        case runs
        /// Now.
        case isDue
    }

    // The other files of this type change these, and `isDead`.
    var queue = MessageQueue()
    // These two fill the rest of a word that the queue leaves.
    private var storedLimit: UInt16
    var storedHighWater: UInt32 = 0
    /// How many messages were queued, and how many bytes they had.
    var messageCount = 0
    var byteCount = 0
    // The other file of this type uses these.
    var coldContention = ColdStorage<Contention>()
    var contention: Contention {
        @inline(__always) _read { yield coldContention.value }
        @inline(__always) _modify { yield &coldContention.value }
    }
    let policy: QueuePolicy
    var isDead = false
    /// Whether nothing is dequeued, and only replies are queued, because the port is moving to another process.
    var isFrozen = false
    // These two fill the rest of a word that the two before leave.
    /// How many slots are reserved for messages that are being copied out of rings.
    private var reservedSlots: UInt16 = 0
    /// How many messages in the queue came through send-once rights.
    var replyCount: Int32 = 0

    init(limit: Int, policy: QueuePolicy = .refuse) {
        storedLimit = UInt16(limit)
        self.policy = policy
    }

    var limit: Int { Int(storedLimit) }

    /// The most messages that waited at once since the last reset.
    var highWater: Int { Int(storedHighWater) }

    /// Whether the queue may have been full; does not read the contention.
    var mayBeContended: Bool { !coldContention.isBlank }

    /// How many messages wait, or are on their way here in a slot that was granted. Raises the high-water mark to that.
    mutating func depth() -> Int {
        let onTheirWay = mayBeContended ? contention.credits.onTheirWay : 0
        noteHighWater(onTheirWay: onTheirWay)
        return queue.count + onTheirWay
    }

    /// How many senders wait for room.
    var waitingCount: Int { contention.senders.count }

    /// How many messages were dropped: by the policy, or because they were too large for the port.
    var droppedCount: Int { contention.droppedCount }

    /// How many messages that wait in sockets may be queued now; zero when the port is dead.
    var room: Int {
        if isDead || isFrozen { return 0 }
        return policy == .refuse ? max(0, openLimit - queue.count) : limit
    }

    /// Whether `room` is more than zero; mostly answered without reading a word that another thread writes.
    var hasRoomForSockets: Bool {
        mutating get { !isDead && !isFrozen && (policy != .refuse || queue.isShorter(than: openLimit)) }
    }

    /// Whether the queue has fewer messages than its limit and that many.
    func isShorter(thanLimitAnd excess: Int) -> Bool { queue.count < limit + excess }

    /// How many free slots are for messages that wait in sockets, or that other processes may send.
    var grantedSlots: Int { contention.slotsReservedForSockets + contention.credits.outstanding }

    /// The limit less the reserved slots; after the limit was lowered perhaps negative.
    var openLimit: Int { limit - Int(reservedSlots) }

    /// Whether a new sender of this process finds room.
    var hasRoom: Bool {
        mutating get {
            if isFrozen { return false }
            if policy != .refuse { return true }
            if coldContention.isBlank { return queue.isShorter(than: openLimit) }
            return contention.senders.isEmpty && queue.isShorter(than: openLimit - grantedSlots)
        }
    }

    /// Queues a message; if there is no room for it, `sender`, unless it is nil, waits for some with the message.
    /// Messages that the policy drops for it are in `removeDropped`.
    ///
    /// The policy ignores what came through a send-once right (`MachMessage.cameByReplyRight`): such a message drops
    /// nothing and is not dropped. With `exceedingLimit` the message needs no room: it is a reply, or the sockets have
    /// found room for it.
    ///
    /// The message is moved out of `offered` when it is queued or its sender waits: a copy would count references.
    mutating func admit(
        _ offered: inout MachMessage?, exceedingLimit: Bool = false, waiting sender: BlockedSender? = nil
    ) -> Admission {
        if isDead { return .dead }
        var isAdmitted = exceedingLimit || hasRoom
        if !isAdmitted { isAdmitted = findGrantedRoom() }
        if !isAdmitted, sender != nil {
            // A sender that waits needs to be woken when there is room: leased messages are taken without a wake-up.
            queue.revokeLease()
            isAdmitted = hasRoom
        }
        guard isAdmitted else {
            guard let sender else { return .full }
            sender.setMessage(&offered)
            contention.senders.append(sender)
            return .wait(sender)
        }
        let wasEmpty = queue.isEmpty
        guard let message = offered.take() else { return .accepted(wasEmpty: wasEmpty) }
        if policy != .refuse, !message.cameByReplyRight { makeRoomByPolicy() }
        append(message)
        return .accepted(wasEmpty: wasEmpty)
    }

    mutating func append(_ message: consuming MachMessage) {
        messageCount &+= 1
        byteCount &+= message.parts.byteCount
        if message.cameByReplyRight { replyCount += 1 }
        queue.append(message)
        noteHighWater()
    }

    private mutating func noteHighWater() {
        if queue.isShorter(than: highWater + 1) { return }
        // A handler may have taken some of them since.
        noteHighWater(onTheirWay: 0)
    }

    /// Notes how many messages wait or are on their way.
    mutating func noteHighWater(onTheirWay more: Int) {
        storedHighWater = UInt32(clamping: max(highWater, queue.count + more))
    }

    private mutating func makeRoomByPolicy() {
        let most =
            switch policy {
            case .refuse: Int.max
            case .dropOldest: limit - 1
            case .keepLatest: 0
            }
        while queue.count - Int(replyCount) > most, let oldest = queue.removeFirst(where: { !$0.cameByReplyRight }) {
            contention.dropped.append(oldest)
            contention.droppedCount += 1
        }
    }

    /// Reserves slots for messages that are about to be copied out of a ring, until `fillReserved`.
    ///
    /// - Returns: how many: none when there is no room, or the port is dead; and whether the connection can send only few
    ///   more.
    @inline(__always)
    mutating func reserveRoom(
        atMost most: Int, over credit: ReceivedCredit? = nil
    ) -> (slots: Int, isLow: Bool) {
        let slots = min(most, room)
        reservedSlots += UInt16(slots)
        guard let credit else { return (slots, false) }
        return (slots, isLow(contention.credits.didReceive(slots, over: credit)))
    }

    /// Queues messages in their reserved slots, unless the port is dead. None of them is a reply.
    ///
    /// - Returns: whether the queue was empty; nil when the port is dead: then `messages`, otherwise empty now, is unchanged.
    mutating func fillReserved(
        by messages: inout MessageBuffer, byteCount bytes: Int
    ) -> Bool? {
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

    /// Dequeues the oldest message, and queues that of the longest-waiting sender, which is set. With `reservingSlot`
    /// the freed slot is reserved for a message that waits in a socket, until `endSlotReservation`.
    mutating func dequeue(reservingSlot: Bool = false, admitting sender: inout BlockedSender?) -> MachMessage? {
        guard !isFrozen, var message = queue.popFirst() else { return nil }
        if message.cameByReplyRight {
            replyCount -= 1
            message.cameByReplyRight = false  // the receiver may forward it
        }
        if reservingSlot { contention.slotsReservedForSockets += 1 }
        sender = admitNextSender()
        return message
    }

    /// Leases the oldest messages to a handler's thread, unless each dequeue must be handled by itself.
    mutating func leaseBatch(atMost limit: Int = .max) -> MessageBatch? {
        guard !isFrozen, policy == .refuse, replyCount == 0, coldContention.isBlank || contention.isUncontended else {
            return nil
        }
        return queue.leaseBatch(atMost: limit)
    }

    /// Revokes the lease of a handler's thread: from now on each dequeue must be handled by itself.
    mutating func revokeLease() {
        queue.revokeLease()
    }

    /// Ends the lease of a handler that has returned: what its thread has not taken is no longer leased.
    mutating func endLease() {
        queue.endLease()
    }

    /// Ends the reservation of a slot after the sockets were polled: a slot that is left goes to waiting senders.
    ///
    /// - Returns: the senders whose wait is over, and whether the queue was empty before.
    mutating func endSlotReservation() -> (senders: [BlockedSender], wasEmpty: Bool) {
        contention.slotsReservedForSockets -= 1
        return admitSenders()
    }

    /// Queues the message of the longest-waiting sender, if there is room. A dead port admits none.
    private mutating func admitNextSender() -> BlockedSender? {
        if isDead || isFrozen || coldContention.isBlank || contention.senders.isEmpty { return nil }
        return admitFirstSender()
    }

    @inline(never)
    private mutating func admitFirstSender() -> BlockedSender? {
        while !contention.senders.isEmpty, queue.count + grantedSlots < openLimit {
            if contention.senders[0].request != nil, postponesGrant() { return nil }
            let sender = contention.senders.removeFirst()
            guard let request = sender.request else {
                if let message = sender.removeMessage() { append(message) }
                return sender
            }
            if grantAwaited(to: request) { return sender }
        }
        return nil
    }

    mutating func admitSenders() -> (senders: [BlockedSender], wasEmpty: Bool) {
        let wasEmpty = queue.isEmpty
        var senders: [BlockedSender] = []
        while let sender = admitNextSender() { senders.append(sender) }
        return (senders, wasEmpty)
    }

    /// Sets how many messages may wait. A lower limit drops nothing; a higher one admits waiting senders.
    ///
    /// - Returns: the senders whose wait is over, and whether the queue was empty before.
    mutating func setLimit(_ limit: Int) -> (senders: [BlockedSender], wasEmpty: Bool) {
        if limit < self.limit, !coldContention.isBlank { _ = contention.credits.takeBack() }
        storedLimit = UInt16(limit)
        return admitSenders()
    }

    /// Restarts the high-water mark at the current count.
    ///
    /// - Returns: the old mark.
    mutating func resetHighWater() -> Int {
        let (old, depth) = (highWater, depth())
        storedHighWater = UInt32(clamping: depth)
        return old
    }

    /// Counts a message that was too large for the port, of which nothing was retained.
    mutating func didDropTooLarge() {
        contention.droppedCount += 1
    }

    /// Removes and returns the messages that the policy dropped and that are not bounced yet.
    mutating func removeDropped() -> [MachMessage] {
        if coldContention.isBlank || contention.dropped.isEmpty { return [] }
        defer { contention.dropped = [] }
        return contention.dropped
    }

    /// Whether a sender still waits, and may still get a slot.
    func isWaiting(_ sender: BlockedSender) -> Bool {
        !isDead && contention.senders.contains { $0 === sender }
    }

    /// Removes a sender from the waiting ones.
    ///
    /// - Returns: whether it still waited: then its message was not queued.
    mutating func stopWaiting(_ sender: BlockedSender) -> Bool {
        guard let index = contention.senders.firstIndex(where: { $0 === sender }) else { return false }
        contention.senders.remove(at: index)
        return true
    }

    /// Ends the port.
    ///
    /// - Returns: the messages that will not be received, and the waiting senders; nil when it had ended before.
    mutating func die() -> (bounced: [MachMessage], senders: [BlockedSender], questions: [EarlyQuestion])? {
        if isDead { return nil }
        isDead = true
        replyCount = 0
        let questions = coldContention.isBlank ? [] : contention.earlyQuestions
        if !questions.isEmpty { contention.earlyQuestions = [] }
        let senders = contention.senders
        // Those of other processes retain their connections.
        if !senders.isEmpty { contention.senders.removeAll { $0.request != nil } }
        return (queue.removeAll(), senders, questions)
    }
}

extension MailboxState {
    var roomNotices: [LoopNotification<SendPossibility>] { contention.roomNotices }

    /// Registers a notice for when there is room, and forgets those of loops that have ended.
    ///
    /// - Returns: what to deliver at once; nil when there is no room now.
    mutating func awaitRoom(
        _ notice: LoopNotification<SendPossibility>, forgetting over: Set<ObjectIdentifier>
    ) -> SendPossibility? {
        if isDead { return .deadName }
        if !hasRoom, !findGrantedRoom() { queue.revokeLease() }
        if hasRoom { return .possible }
        if !over.isEmpty { contention.roomNotices.removeAll { over.contains(ObjectIdentifier($0)) } }
        contention.roomNotices.append(notice)
        return nil
    }

    /// The notices that are due, because there is room or the port is dead.
    mutating func removeDueRoomNotices() -> [LoopNotification<SendPossibility>] {
        guard !coldContention.isBlank, !contention.roomNotices.isEmpty, isDead || hasRoom else { return [] }
        defer { contention.roomNotices = [] }
        return contention.roomNotices
    }
}
