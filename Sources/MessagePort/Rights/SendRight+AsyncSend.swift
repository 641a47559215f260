// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension SendRight {
    /// Sends a message and suspends the task while the port's queue is full.
    ///
    /// Otherwise as the blocking form: messages of one task over one right arrive in the order in which they were sent.
    /// A task that is cancelled before the call sends nothing; the asynchronous `request` documents how soon a
    /// cancellation ends the wait for room. ``trySend(_:)`` never waits, so it needs no such form.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``. Nothing was delivered then.
    nonisolated(nonsending) public func send(_ message: MachMessage, within limit: Duration) async throws(PortError) {
        if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
        let sending = SendWait(until: .after(limit))
        defer { sending.finish() }
        do throws(PortError) {
            try await destination.send(message, waiting: sending)
        } catch {
            throw destination.naming(error)
        }
    }
}
