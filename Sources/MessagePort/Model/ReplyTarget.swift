// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The object behind a send-once right. Its receiver gets exactly one result: a reply, or the reason why none will come.
// A message that is sent for a confirmation has one too: the reply is empty, and is made here when the message has got
// as far as its sender wants to know; the message's receiver has no right to reply.
//
//   open ──take()──▶ taken ──deliver() or moved()──▶ used
//
// `take` moves the right from the message (whose copies share this object) into the one SendOnceRight. When the right
// goes into another message, that one gets an object of its own, so the message from which the right was taken never
// has it again. When the last message that holds an open target goes, the target's deinit notifies the receiver, so no
// requester waits forever.

package import PortSystem
import Synchronization

package final class ReplyTarget: Sendable {
    private enum Stage: UInt8, AtomicRepresentable {
        case open, taken, used
    }

    package let receiver: any ReplyReceiver  // immutable
    /// When the message is confirmed; nil when its receiver may reply.
    let confirmation: SendConfirmation?  // immutable
    private let stage = Atomic<Stage>(.open)
    /// Whether the message was dequeued: what happens to the right from then on happens to a message that was read.
    private let wasRead: Atomic<Bool>
    /// How many sent messages ask for the reply: a message may be sent more than once.
    private let askCount = Atomic<Int>(0)

    package init(_ receiver: any ReplyReceiver, wasRead: Bool = false, confirming confirmation: SendConfirmation? = nil)
    {
        self.receiver = receiver
        self.wasRead = Atomic(wasRead)
        self.confirmation = confirmation
    }

    deinit {
        fail(PortError(.replyDropped))
    }

    /// Whether the right is still in the message.
    package var isOpen: Bool { stage.load(ordering: .acquiring) == .open }

    /// Whether the message's receiver may reply.
    var allowsReply: Bool { confirmation == nil && isOpen }

    /// Takes the right out of the message.
    ///
    /// - Returns: false when it was taken before.
    package func take() -> Bool {
        let isTaken = stage.compareExchange(expected: .open, desired: .taken, ordering: .acquiringAndReleasing)
            .exchanged
        if isTaken { receiver.noteRightRemoved() }
        return isTaken
    }

    func noteRead() {
        wasRead.store(true, ordering: .releasing)
        receiver.noteRead()
        confirm(.taken)
    }

    /// The message has got that far: notifies a sender that waits for this.
    func confirm(_ reached: SendConfirmation) {
        guard confirmation == reached, stage.exchange(.used, ordering: .acquiringAndReleasing) != .used else { return }
        receiver.confirm()
    }

    /// Whether a message with the right, when it is sent on to another process, asks there. One that is confirmed was
    /// received here: it is handled when this process is done with it.
    var mayAsk: Bool { isOpen && (confirmation == nil || !wasRead.load(ordering: .acquiring)) }

    /// A queue drops the message. A copy that a receiver has sent on does not change that it has got there.
    package func bounce(_ error: PortError) {
        if confirmation == .handled, wasRead.load(ordering: .acquiring) { return }
        fail(error)
    }

    /// The message's handler has returned. If the right is still in the message, code that retains it may reply.
    func handlerDidEnd() {
        if isOpen { receiver.noteRightRemoved() }
    }

    /// Whether the right was not used, and the requester no longer waits for the reply.
    func pollAbandonment() -> Bool {
        stage.load(ordering: .acquiring) != .used && receiver.pollAbandonment()
    }

    /// Delivers the notice once, when the requester no longer waits for the reply and the right is not used.
    func awaitAbandonment(_ notice: DeathNotice) {
        receiver.awaitAbandonment(
            DeathNotice(loop: notice.loop, mode: notice.mode) { [weak self] reason in
                if let self, stage.load(ordering: .acquiring) != .used { notice.handler(reason) }
            })
    }

    /// Moves the right, which the caller has taken, into a new open target; nil when it was used.
    package func moved() -> ReplyTarget? {
        guard stage.exchange(.used, ordering: .acquiringAndReleasing) != .used else { return nil }
        return ReplyTarget(receiver, wasRead: true)
    }

    /// Uses the right, once; the caller has taken it.
    package func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try use { (receiver) throws(PortError) in try receiver.deliver(message, until: deadline) }
    }

    /// Uses the right, once, for a reply that has come from another process; the caller has taken it.
    package func forward(_ message: MachMessage) throws(PortError) {
        try use { (receiver) throws(PortError) in try receiver.forward(message) }
    }

    private func use(_ body: (any ReplyReceiver) throws(PortError) -> Void) throws(PortError) {
        guard stage.exchange(.used, ordering: .acquiringAndReleasing) != .used else { throw PortError(.noReplyRight) }
        do throws(PortError) {
            try body(receiver)
        } catch {
            let isForDescriptors = error.systemError?.isInFlightLimit == true
            receiver.fail(PortError(isForDescriptors ? .descriptorsLost : .replyDropped, delivery: .read))
            throw error
        }
    }

    /// The message with the right is about to be sent over a connection. If it was received here, another process may
    /// reply as well from now on.
    func willAsk() {
        askCount.add(1, ordering: .acquiringAndReleasing)
        if wasRead.load(ordering: .acquiring) { receiver.noteRightRemoved() }
    }

    /// A sent message no longer awaits the reply over its connection.
    ///
    /// - Returns: whether no other sent message does either.
    @discardableResult
    func didEndAsking() -> Bool {
        askCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }

    /// No reply will come over a connection: notifies the receiver, unless another sent message still awaits it.
    func failAsking(_ error: PortError) {
        if didEndAsking() { fail(error) }
    }

    /// The right went to another process with the port at whose queue the message was: what becomes of it is not decided
    /// here any more.
    func disarm() { stage.store(.used, ordering: .releasing) }

    /// Reports to the receiver that no reply will come, unless the right was used.
    package func fail(_ error: PortError) {
        // The last copy of a message that was dequeued is released.
        if error.code == .replyDropped, wasRead.load(ordering: .acquiring) { confirm(.handled) }
        guard stage.exchange(.used, ordering: .acquiringAndReleasing) != .used else { return }
        receiver.fail(error.delivered(wasRead.load(ordering: .acquiring) ? .read : .unread))
    }
}
