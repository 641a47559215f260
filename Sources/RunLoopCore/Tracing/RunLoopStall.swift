// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem

/// A loop has been busy for longer than it should: what a ``RunLoopStallMonitor`` reports.
public struct RunLoopStall: Sendable, Hashable, CustomStringConvertible {
    /// The kernel's id of the loop's thread.
    public let threadID: Int32
    /// Since when the loop has been busy: when it last had nothing to do, or when its run began.
    public let since: MonotonicInstant
    /// How long it has been busy, or was when it is over.
    public let duration: Duration
    /// Whether the loop is free again. Each stall is reported once while it lasts, and once when it is over.
    public let isOver: Bool
    /// The handler that is being called, the innermost one when runs are nested; when the stall is over, or no handler
    /// is being called, the one that took longest. Nil when no handler was called: then a readiness check or the loop
    /// itself is slow.
    public let callout: RunLoopCallout?
    /// How long that handler has kept the loop busy, without the handlers that nested runs called inside it.
    public let calloutDuration: Duration
    /// The mode in which that handler was called.
    public let mode: RunLoopMode
    /// How many handlers were called meanwhile, or are being called. When many share the time, each of them may be
    /// fast.
    public let calloutCount: Int

    /// A sentence with all of that.
    public var description: String {
        let verb = isOver ? "was busy for" : "has been busy for"
        let time = Self.milliseconds(duration)
        guard let callout else { return "The run loop of thread \(threadID) \(verb) \(time), without a callout." }
        return "The run loop of thread \(threadID) \(verb) \(time), \(Self.milliseconds(calloutDuration)) of it in "
            + "\(callout) in mode \(mode), with \(calloutCount) callout\(calloutCount == 1 ? "" : "s") in all."
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(duration.nanoseconds / 1_000_000) ms"
    }
}
