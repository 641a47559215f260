// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The object behind a send-once right. Its receiver hears exactly once: a reply, or why none will come.
//
//   open ──take()──▶ taken ──deliver() or moved()──▶ used
//
// `take` moves the right from the message (whose copies share this object) into the one SendOnceRight. When the right
// goes into another message, that gets an object of its own, so the message that it was taken from never has it again.
// When the last message that holds an open target goes, the target's deinit tells the receiver, so no requester
// waits for ever.

package import PortSystem
package import RunLoopCore
import Synchronization

/// A connection to another process over which a reply may come.
package protocol ReplyConnection: AnyObject, Sendable {
    /// The source by which a loop listens to the connection; nil when it is closed.
    func replySource() throws(PortError) -> RunLoopSource?
    /// The requester with the token no longer waits: says so to the peer.
    func giveUp(token: UInt64)
}

/// Who waits for a reply.
package protocol ReplyReceiver: AnyObject, Sendable {
    /// Gives the reply. Waits for room until the deadline, where there is a queue that can be full.
    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError)
    /// Gives the reply as it came from another process. Never waits; what has no room yet follows when there is.
    func handOn(_ message: MachMessage) throws(PortError)
    /// Says that no reply will come, and why.
    func fail(_ error: PortError)
    /// The reply will come over this connection, so the receiver has to listen to it.
    func expectReply(over connection: any ReplyConnection) throws(PortError)

    /// The message with the reply right was taken from its port's queue.
    func noteRead()
    /// The reply right left its message, or its message has outlived the handler: from now on anybody may hold it.
    func noteTaken()
    /// Whether nobody waits for the reply any more.
    var isAbandoned: Bool { get }
    /// Tells the watcher once, when nobody waits for the reply any more; at once when that is so.
    func watchAbandonment(_ watcher: DeathWatcher)
    /// Has the connection say, when nobody waits any more, that the message that asked with the token is abandoned.
    func passAbandonment(to connection: any ReplyConnection, token: UInt64)
    /// The token of the request that its requester itself sent over the connection, and that was told with
    /// `passAbandonment`; nil when there was none.
    func token(over connection: any ReplyConnection) -> UInt64?
}

extension ReplyReceiver {
    /// A receiver of this process always has room.
    package func handOn(_ message: MachMessage) throws(PortError) {
        try deliver(message, until: .distantPast)
    }

    package func noteRead() {}
    package func noteTaken() {}
    package var isAbandoned: Bool { false }
    package func watchAbandonment(_ watcher: DeathWatcher) {}
    package func passAbandonment(to connection: any ReplyConnection, token: UInt64) {}
    package func token(over connection: any ReplyConnection) -> UInt64? { nil }
}

package final class ReplyTarget: Sendable {
    private enum Stage: UInt8, AtomicRepresentable {
        case open, taken, used
    }

    package let receiver: any ReplyReceiver  // immutable
    private let stage = Atomic<Stage>(.open)
    /// The message was taken from a queue: what happens to the right from now on happens to a message that was read.
    private let wasRead: Atomic<Bool>
    /// How many sent messages ask for the reply: a message may be sent more than once.
    private let askCount = Atomic<Int>(0)

    package init(_ receiver: any ReplyReceiver, wasRead: Bool = false) {
        self.receiver = receiver
        self.wasRead = Atomic(wasRead)
    }

    deinit {
        fail(PortError(.replyDropped))
    }

    /// Whether the right is still in the message.
    package var isOpen: Bool { stage.load(ordering: .acquiring) == .open }

    /// Takes the right out of the message.
    ///
    /// - Returns: false when it was taken before.
    package func take() -> Bool {
        let isTaken = stage.compareExchange(expected: .open, desired: .taken, ordering: .acquiringAndReleasing)
            .exchanged
        if isTaken { receiver.noteTaken() }
        return isTaken
    }

    /// The message was taken from its port's queue.
    func noteRead() {
        wasRead.store(true, ordering: .releasing)
        receiver.noteRead()
    }

    /// The message's handler is over. If the right is still in the message, somebody who keeps that may reply.
    func handlerDidEnd() {
        if isOpen { receiver.noteTaken() }
    }

    /// Whether the right was not used, and nobody waits for the reply any more.
    var isAbandoned: Bool {
        stage.load(ordering: .acquiring) != .used && receiver.isAbandoned
    }

    /// Tells the watcher once, when nobody waits for the reply any more and the right is not used.
    func watchAbandonment(_ watcher: DeathWatcher) {
        receiver.watchAbandonment(
            DeathWatcher(loop: watcher.loop, mode: watcher.mode) { [weak self] in
                if let self, stage.load(ordering: .acquiring) != .used { watcher.handler() }
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
    package func handOn(_ message: MachMessage) throws(PortError) {
        try use { (receiver) throws(PortError) in try receiver.handOn(message) }
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

    /// The message with the right is about to be sent over a connection.
    func willAsk() { askCount.add(1, ordering: .acquiringAndReleasing) }

    /// Over that connection nothing is awaited any more.
    ///
    /// - Returns: whether nobody else is asked either.
    @discardableResult
    func didEndAsking() -> Bool {
        askCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }

    /// Over a connection no reply will come: when nobody else is asked, the receiver is told.
    func failAsking(_ error: PortError) {
        if didEndAsking() { fail(error) }
    }

    /// Tells the receiver that no reply will come, unless the right was used.
    package func fail(_ error: PortError) {
        guard stage.exchange(.used, ordering: .acquiringAndReleasing) != .used else { return }
        receiver.fail(error.delivered(wasRead.load(ordering: .acquiring) ? .read : .unread))
    }
}
