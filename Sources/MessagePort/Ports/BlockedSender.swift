// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

// @unchecked: `message` is guarded by the lock of the port in whose line the sender is; in none, one thread alone has
// it.
/// A sender that waits for room, with its message. Whoever makes room queues the message for it: so senders are served
/// in the order in which they came, and nobody who comes later is quicker.
final class BlockedSender: @unchecked Sendable {
    private var message: MachMessage?
    /// Woken when the wait is over: `MailboxState.stopWaiting` then says how it ended.
    let waiter: Waiter  // immutable

    private init(_ waiter: Waiter) {
        self.waiter = waiter
    }

    /// The one that a thread has waited with last: a stream whose sender is the quicker one takes no memory for its
    /// waits.
    private static let spare = ObjectCache()

    /// Makes one, which takes the message; nil when the sender does not wait.
    static func make(_ message: inout MachMessage?, _ patience: BlockingMode) -> BlockedSender? {
        let made: BlockedSender
        if case .thread = patience, let used = spare.take() as? BlockedSender {
            made = used
        } else {
            guard let waiter = patience.makeWaiter() else { return nil }
            made = BlockedSender(waiter)
        }
        swap(&made.message, &message)
        return made
    }

    /// Its message, which is to be queued.
    func takeMessage() -> MachMessage? { message.take() }

    /// Waits until it is woken.
    ///
    /// - Returns: whether it was: then nobody wakes it any more.
    func wait(until deadline: MonotonicInstant) -> Bool {
        guard case .thread(let event) = waiter else { return false }
        return event.wait(until: deadline)
    }

    /// Leaves it for the next thread that has to wait. It has left its line, and nobody will wake it.
    func leaveToOthers() {
        guard case .thread(let event) = waiter else { return }
        event.clear()
        Self.spare.put(self)
    }
}
