// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// How far a message has got when a confirming send returns.
public enum SendConfirmation: UInt64, Hashable, Sendable, CaseIterable {
    /// It is in the queue of its port. The queue's policy may drop it later.
    case queued = 1

    /// It was taken out of the queue, by a handler, a thread or a task.
    case taken = 2

    /// Its receiver is done with it: the handler has returned, and nothing retains the message or a copy of it, but for
    /// those that were sent on to other processes. A port without a handler is done with it at once. What
    /// `CFMessagePortSendRequest` waits for when it is given a reply mode, and the callback returns no data.
    case handled = 3
}
