// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The points in a run at which observers are called. The values are those of `CFRunLoopActivity`.
public struct RunLoopActivity: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// The bits.
    public let rawValue: UInt

    /// Makes a set of activities from its bits.
    ///
    /// - Parameter rawValue: the bits.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// A run begins.
    public static let entry = RunLoopActivity(rawValue: 1)
    /// A pass begins; timers may fire in it.
    public static let beforeTimers = RunLoopActivity(rawValue: 2)
    /// Signalled version-0 sources are about to be performed.
    public static let beforeSources = RunLoopActivity(rawValue: 4)
    /// The loop is about to wait.
    public static let beforeWaiting = RunLoopActivity(rawValue: 32)
    /// The loop has waited, and has handled nothing yet.
    public static let afterWaiting = RunLoopActivity(rawValue: 64)
    /// A run ends.
    public static let exit = RunLoopActivity(rawValue: 128)
    /// All of them.
    public static let all = RunLoopActivity(rawValue: 0x0FFF_FFFF)

    private static let names: [(RunLoopActivity, String)] = [
        (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
        (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
    ]

    /// The names of the activities, in the order of a run, joined by "|".
    public var description: String {
        self == .all ? "all" : Self.names.filter { contains($0.0) }.map(\.1).joined(separator: "|")
    }
}
