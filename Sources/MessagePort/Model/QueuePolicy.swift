// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a port does with a message for which its queue has no room.
///
/// A message of another process is queued when the port's messages are received; until then it waits in the connection.
/// So a sender of another process may find no room in the connection, and waits or its send fails, whatever the policy.
/// The policy chooses among all that has arrived: the connections are drained before a message is received.
///
/// The policy ignores what comes through a send-once right (``MachPort/makeSendOnceRight()``), a reply or the notice
/// that none will come: it is always queued, drops nothing, and is never dropped, for each right brings exactly one
/// message.
public enum QueuePolicy: Hashable, Sendable {
    /// The sender waits until there is room, or its send fails because the queue is full. Nothing is lost.
    case refuse
    /// The oldest message in the queue makes room for the new one; a sender never waits. For logs and samples, where
    /// the latest few matter.
    case dropOldest
    /// The new message replaces all that wait; a sender never waits. For a state of which only the newest value
    /// matters.
    case keepLatest
}
