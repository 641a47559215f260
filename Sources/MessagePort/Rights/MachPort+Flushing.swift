// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension MachPort {
    /// Waits until no reply of this process waits for room: for a process that is about to end.
    ///
    /// A reply never waits for its requester. A reply for which a requester in another process has not made room is
    /// queued here, and is lost when this process ends, where on the Mac the kernel has the whole reply. After a call
    /// that returns true the kernel has it here, too, or it is in memory that is shared with the requester, which reads
    /// it even after this process has ended.
    ///
    /// It covers the replies of all ports, also of those that have ended, and what is queued after them, such as the
    /// notice of a port's end. It waits neither for a requester that goes away, nor for a request that was not replied
    /// to. First end what makes new replies: free the name, invalidate the ports. It does not cover a reply to a reply,
    /// to a request that came as the answer of another process: sending it waits for room, and one that is handed on,
    /// or an error, may be lost.
    ///
    /// ```swift
    /// port.invalidate()
    /// if !MachPort.flushReplies(within: .seconds(5)) { print("a requester does not read its reply") }
    /// exit(0)
    /// ```
    ///
    /// It blocks the thread, and runs no loop: a thread of the library sends. A requester on the same thread does not
    /// read meanwhile. It may be called on any thread. D-Bus has `dbus_connection_flush` for this, ZeroMQ `ZMQ_LINGER`.
    ///
    /// - Parameter limit: how long to wait. Zero or less only checks.
    /// - Returns: whether no reply was waiting at some moment of the call; false when the limit passed first.
    @discardableResult
    public static func flushReplies(within limit: Duration) -> Bool {
        UnflushedReplies.current.waitUntilSent(until: .after(limit))
    }

    /// The same in a task, which holds no thread while it waits.
    ///
    /// - Parameter limit: how long to wait. Zero or less only checks.
    /// - Returns: as the blocking form; false, too, when the task was cancelled before all was sent.
    @discardableResult
    nonisolated(nonsending) public static func flushReplies(within limit: Duration) async -> Bool {
        let wait = SendWait(until: .after(limit))
        defer { wait.finish() }
        return await UnflushedReplies.current.waitUntilSent(waiting: wait)
    }
}
