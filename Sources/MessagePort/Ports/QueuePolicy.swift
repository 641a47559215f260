// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a port does with a message for which its queue has no room.
///
/// What comes through a send-once right (``MachPort/makeSendOnceRight()``), a reply or the notice that none will come, is
/// outside of it: it is always queued, drops nothing, and is never dropped, for each right brings exactly one message.
public enum QueuePolicy: Hashable, Sendable {
    /// The sender waits until there is room, or is told that the queue is full. Nothing is lost.
    case refuse
    /// The oldest message in the queue makes room for the new one; a sender never waits. For logs and samples, where the
    /// latest few matter.
    case dropOldest
    /// The new message replaces all that wait; a sender never waits. For a state of which only the newest value matters.
    case keepLatest
}
