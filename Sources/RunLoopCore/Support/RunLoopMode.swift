// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The name of a mode: a set of sources, timers and observers that a run of a loop handles.
///
/// Two modes are the same when their names are equal. Any name makes a mode; a loop knows the mode once something is
/// added to it or a block is posted for it.
///
/// A loop's modes last until its thread ends: they are never removed, and each needs memory. Reuse a few names instead
/// of making a new one for each request.
public struct RunLoopMode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The mode's name.
    public let rawValue: String

    /// Makes a mode's name from a string.
    ///
    /// - Parameter rawValue: the name; any string.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Makes a mode's name from a string.
    ///
    /// - Parameter name: the name; any string.
    public init(_ name: String) {
        self.init(rawValue: name)
    }

    /// Makes a mode's name from a literal.
    ///
    /// - Parameter value: the name.
    public init(stringLiteral value: String) {
        self.init(rawValue: value)
    }

    /// The name.
    public var description: String { rawValue }

    /// The mode for everything that has no reason to be elsewhere. It is a common mode of every loop.
    public static let `default` = RunLoopMode("default")

    /// Stands for all common modes of a loop: items that are added to it are added to each of them, also to modes made
    /// common later.
    ///
    /// It is no mode of its own: a run in it finishes at once.
    public static let common = RunLoopMode("common")

    /// A mode for the time in which a user drags or scrolls, and only that should be served. Make it common yourself
    /// with ``ThreadRunLoop/addCommonMode(_:)`` when your common items should continue to be served during it.
    public static let eventTracking = RunLoopMode("eventTracking")
}
