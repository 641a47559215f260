// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

// @unchecked: `message` is guarded by the lock of the port at which the sender waits; at no port, only one thread has
// it.
/// A sender that waits for room, with its message. The thread that makes room queues the message for it: so senders are
/// served in order, and a later sender cannot overtake.
final class BlockedSender: @unchecked Sendable {
    private var message: MachMessage?
    /// Woken when the wait is over: `MailboxState.stopWaiting` then says how it ended. Nil in another process.
    private let waiter: Waiter?  // immutable
    /// What waits for a sender of another process, which gets a slot instead of having its message queued.
    let request: CreditRequest?  // immutable

    init(_ waiter: Waiter) { (self.waiter, request) = (waiter, nil) }

    init(_ request: CreditRequest) { (waiter, self.request) = (nil, request) }

    func wake() {
        waiter?.wake()
        request?.wake()
    }

    /// The object of a thread's last wait: a stream whose sender is faster allocates nothing for its waits.
    private static let spare = ObjectCache()

    static func ofThread() -> BlockedSender { spare.take() as? BlockedSender ?? BlockedSender(.thread(ThreadEvent())) }

    func setMessage(_ message: inout MachMessage?) { swap(&self.message, &message) }

    func removeMessage() -> MachMessage? { message.take() }

    /// Waits until it is woken.
    ///
    /// - Returns: whether it was: then no other thread will wake it.
    func wait(until deadline: MonotonicInstant) -> Bool {
        guard case .thread(let event) = waiter else { return false }
        return event.wait(until: deadline)
    }

    /// Recycles it for the next thread that waits. It waits at no port, and no thread will wake it.
    func recycle() {
        guard case .thread(let event) = waiter else { return }
        event.clear()
        Self.spare.put(self)
    }
}
