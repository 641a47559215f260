// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("MailboxState") struct MailboxStateTests {
    @Test("a mailbox accepts up to its limit, and says whether it was empty")
    func limit() {
        let mailbox = Mailbox(limit: 2)
        #expect(mailbox.room == 2)
        #expect(mailbox.add(1) == "accepted, was empty")
        #expect(mailbox.add(2) == "accepted")
        #expect(mailbox.room == 0)
        #expect(mailbox.add(3) == "full")
        #expect(mailbox.queueCount == 2)
        #expect(mailbox.dequeue()?.message.id == 1)
        #expect(mailbox.room == 1)
        #expect(mailbox.dequeue()?.message.id == 2)
        #expect(mailbox.dequeue()?.message.id == nil)
        #expect(mailbox.add(4) == "accepted, was empty")
    }

    @Test("a reply needs no room")
    func exceeding() {
        let mailbox = Mailbox(limit: 1)
        #expect(mailbox.add(1) == "accepted, was empty")
        #expect(mailbox.add(2, exceedingLimit: true) == "accepted")
        #expect(mailbox.room == 0)
        #expect(mailbox.dequeue()?.message.id == 1)
        #expect(mailbox.add(3) == "full")
        #expect(mailbox.dequeue()?.message.id == 2)
        #expect(mailbox.room == 1)
    }

    @Test("room goes to the sender that has waited longest, whose message is queued at once")
    func waiting() throws {
        let mailbox = Mailbox(limit: 1)
        _ = mailbox.add(1)
        let senders = try (Int32(2)...4).map { id in try #require(mailbox.wait(id)) }
        #expect(mailbox.waitingCount == 3)
        let taken = try #require(mailbox.dequeue())
        #expect(taken.message.id == 1)
        #expect(taken.sender === senders[0])
        #expect(mailbox.room == 0)
        #expect(mailbox.add(9) == "full")
        #expect(!mailbox.stopWaiting(senders[0]))
        #expect(mailbox.stopWaiting(senders[1]))
        #expect(!mailbox.stopWaiting(senders[1]))
        #expect(mailbox.dequeue()?.message.id == 2)
        #expect(mailbox.dequeue()?.message.id == 4)
        #expect(mailbox.dequeue()?.message.id == nil)
        #expect(mailbox.waitingCount == 0)
    }

    @Test("a reply above the limit does not let a waiting sender in too early")
    func exceedingAndWaiting() throws {
        let mailbox = Mailbox(limit: 1)
        _ = mailbox.add(1)
        _ = mailbox.add(2, exceedingLimit: true)
        let sender = try #require(mailbox.wait(3))
        #expect(mailbox.dequeue()?.sender == nil)
        #expect(mailbox.dequeue()?.sender === sender)
        #expect(mailbox.dequeue()?.message.id == 3)
    }

    @Test("a dead mailbox gives its messages and waiting senders back, once")
    func death() throws {
        let mailbox = Mailbox(limit: 1)
        _ = mailbox.add(1)
        let sender = try #require(mailbox.wait(2))
        let end = try #require(mailbox.die())
        #expect(end.bounced.map(\.id) == [1])
        #expect(end.senders.map { $0 === sender } == [true])
        #expect(mailbox.isDead)
        #expect(mailbox.die() == nil)
        #expect(mailbox.room == 0)
        #expect(mailbox.add(3) == "dead")
        #expect(mailbox.add(3, exceedingLimit: true) == "dead")
        #expect(mailbox.dequeue()?.message.id == nil)
        #expect(mailbox.stopWaiting(sender))
    }

    @Test("a dead mailbox lets no waiting sender in, whatever happens to its limit and reserved slots")
    func deathAndRoom() throws {
        let mailbox = Mailbox(limit: 1)
        _ = mailbox.add(1)
        let senders = try (Int32(2)...3).map { id in try #require(mailbox.wait(id)) }
        #expect(mailbox.dequeue(reservingSlot: true)?.sender == nil)
        _ = try #require(mailbox.die())
        #expect(mailbox.setLimit(5).isEmpty)
        #expect(mailbox.endSlotReservation().isEmpty)
        #expect(mailbox.queueCount == 0)
        #expect(senders.map { mailbox.stopWaiting($0) } == [true, true])
    }

    @Test("drop-oldest drops what is above the limit, also for a message that needs no room, and gives it back once")
    func dropOldest() {
        let mailbox = Mailbox(limit: 2, policy: .dropOldest)
        for id in Int32(1)...3 { #expect(mailbox.add(id) != "full") }
        #expect(mailbox.add(4, exceedingLimit: true) == "accepted")
        #expect(mailbox.queueCount == 2)
        #expect(mailbox.removeDropped() == [1, 2])
        #expect(mailbox.removeDropped() == [])
        #expect(mailbox.room == 2)
        #expect(mailbox.dequeue()?.message.id == 3)
    }

    @Test("keep-latest leaves one message, for which a receiver is woken if the queue was empty")
    func keepLatest() {
        let mailbox = Mailbox(limit: 5, policy: .keepLatest)
        #expect(mailbox.add(1) == "accepted, was empty")
        #expect(mailbox.add(2) == "accepted")
        #expect(mailbox.removeDropped() == [1])
        #expect(mailbox.dequeue()?.message.id == 2)
        #expect(mailbox.add(3) == "accepted, was empty")
    }

    @Test(
        "what came through send-once rights drops nothing and is not dropped",
        arguments: [QueuePolicy.dropOldest, .keepLatest])
    func replies(policy: QueuePolicy) {
        let mailbox = Mailbox(limit: 1, policy: policy)
        #expect(mailbox.addReply(100) == "accepted, was empty")
        #expect(mailbox.add(1) == "accepted")
        #expect(mailbox.addReply(101) == "accepted")
        #expect(mailbox.removeDropped() == [])
        #expect(mailbox.add(2) == "accepted")
        #expect(mailbox.removeDropped() == [1])
        #expect((0..<3).map { _ in mailbox.dequeue()?.message.id } == [100, 101, 2])
        #expect(mailbox.add(3) == "accepted, was empty")
        #expect(mailbox.add(4) == "accepted")
        #expect(mailbox.removeDropped() == [3])
    }

    @Test("a reply that was dequeued is a message like others")
    func formerReply() throws {
        let mailbox = Mailbox(limit: 1, policy: .keepLatest)
        _ = mailbox.addReply(100)
        #expect(mailbox.add(try #require(mailbox.dequeue()).message) == "accepted, was empty")
        _ = mailbox.add(1)
        #expect(mailbox.removeDropped() == [100])
    }

    @Test("a slot reserved for the sockets goes to no other sender, until the sockets are no longer read")
    func reservedSlot() throws {
        let mailbox = Mailbox(limit: 1)
        _ = mailbox.add(1)
        let sender = try #require(mailbox.wait(2))
        #expect(mailbox.dequeue(reservingSlot: true)?.sender == nil)
        #expect(mailbox.room == 1)
        #expect(mailbox.add(9) == "full")
        #expect(mailbox.add(3, exceedingLimit: true) == "accepted, was empty")
        #expect(mailbox.endSlotReservation().isEmpty)
        #expect(mailbox.dequeue(reservingSlot: true)?.message.id == 3)
        #expect(mailbox.endSlotReservation().map { $0 === sender } == [true])
        #expect(mailbox.dequeue()?.message.id == 2)
        #expect(mailbox.dequeue()?.message.id == nil)
    }

    @Test("a lower limit keeps the queue and lets no sender in; a higher one lets in as many as fit, in order")
    func limitChanges() throws {
        let mailbox = Mailbox(limit: 3)
        for id in Int32(0)..<3 { _ = mailbox.add(id) }
        let senders = try (Int32(3)...5).map { id in try #require(mailbox.wait(id)) }
        #expect(mailbox.setLimit(1).isEmpty)
        #expect(mailbox.queueCount == 3)
        #expect(mailbox.room == 0)
        #expect(mailbox.dequeue()?.sender == nil)
        #expect(mailbox.setLimit(4).map { $0 === senders[0] || $0 === senders[1] } == [true, true])
        #expect(mailbox.waitingCount == 1)
        #expect((0..<4).map { _ in mailbox.dequeue()?.message.id } == [1, 2, 3, 4])
        #expect(mailbox.dequeue()?.message.id == 5)
    }

    @Test("reserved slots go to no other sender until they are filled")
    func reserving() throws {
        let mailbox = Mailbox(limit: 4)
        _ = mailbox.add(1)
        #expect(mailbox.reserve(atMost: 2) == 2)
        #expect(mailbox.room == 1)
        #expect(mailbox.add(2) == "accepted")
        #expect(mailbox.add(3) == "full")
        let sender = try #require(mailbox.wait(4))
        #expect(mailbox.reserve(atMost: 9) == 0)
        #expect(mailbox.dequeue()?.sender === sender)
        let (messages, bytes) = (mailbox.messageCount, mailbox.byteCount)
        #expect(mailbox.fillReserved([5, 6]) == false)
        #expect(mailbox.messageCount - messages == 2 && mailbox.byteCount - bytes == 6)
        #expect(mailbox.room == 0)
        #expect((0..<5).map { _ in mailbox.dequeue()?.message.id } == [2, 4, 5, 6, nil])
        #expect(mailbox.room == 4)
    }

    @Test("a limit that becomes lower than what is reserved leaves no room, and revokes nothing")
    func reservedAboveLimit() {
        let mailbox = Mailbox(limit: 4)
        #expect(mailbox.reserve(atMost: 3) == 3)
        #expect(mailbox.setLimit(2).isEmpty)
        #expect(mailbox.room == 0)
        #expect(mailbox.reserve(atMost: 1) == 0)
        #expect(mailbox.add(9) == "full")
        #expect(mailbox.fillReserved([1, 2, 3]) == true)
        #expect(mailbox.queueCount == 3 && mailbox.room == 0)
    }

    @Test("a port that has ended reserves nothing, and accepts nothing for slots that it reserved before")
    func reservedAfterEnd() {
        let mailbox = Mailbox(limit: 4)
        #expect(mailbox.reserve(atMost: 1) == 1)
        _ = mailbox.die()
        #expect(mailbox.fillReserved([1]) == nil)
        #expect(mailbox.reserve(atMost: 2) == 0)
    }
}

/// A mailbox state in a box, so that expectations can change it.
private final class Mailbox {
    private var state: MailboxState

    init(limit: Int, policy: QueuePolicy = .refuse) {
        state = MailboxState(limit: limit, policy: policy)
    }

    var room: Int { state.room }
    var queueCount: Int { state.queue.count }
    var waitingCount: Int { state.waitingCount }
    var isDead: Bool { state.isDead }

    func add(_ id: Int32, exceedingLimit: Bool = false) -> String {
        add(MachMessage(id: id), exceedingLimit: exceedingLimit)
    }

    func addReply(_ id: Int32) -> String {
        var message = MachMessage(id: id)
        message.cameByReplyRight = true
        return add(message, exceedingLimit: true)
    }

    func add(_ message: MachMessage, exceedingLimit: Bool = false) -> String {
        switch state.admit(message, exceedingLimit: exceedingLimit) {
        case .accepted(let wasEmpty): wasEmpty ? "accepted, was empty" : "accepted"
        case .wait: "wait"
        case .full: "full"
        case .dead: "dead"
        }
    }

    func wait(_ id: Int32) -> BlockedSender? {
        guard case .wait(let sender) = state.admit(MachMessage(id: id), waiting: .ofThread()) else { return nil }
        return sender
    }

    func dequeue(reservingSlot: Bool = false) -> (message: MachMessage, sender: BlockedSender?)? {
        var sender: BlockedSender?
        return state.dequeue(reservingSlot: reservingSlot, admitting: &sender).map { ($0, sender) }
    }

    func endSlotReservation() -> [BlockedSender] { state.endSlotReservation().senders }
    func reserve(atMost most: Int) -> Int { state.reserveRoom(atMost: most).slots }

    var messageCount: Int { state.messageCount }
    var byteCount: Int { state.byteCount }

    func fillReserved(_ ids: [Int32]) -> Bool? {
        var messages = MessageBuffer()
        for id in ids { messages.append(MachMessage(id: id)) }
        return state.fillReserved(by: &messages, byteCount: ids.count * 3)
    }

    func setLimit(_ limit: Int) -> [BlockedSender] { state.setLimit(limit).senders }
    func removeDropped() -> [Int32] { state.removeDropped().map(\.id) }
    func stopWaiting(_ sender: BlockedSender) -> Bool { state.stopWaiting(sender) }
    func die() -> (bounced: [MachMessage], senders: [BlockedSender])? { state.die().map { ($0.bounced, $0.senders) } }
}
