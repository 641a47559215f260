// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension Duration {
    /// No limit: a wait that lasts until something happens.
    public static let unlimited = Duration.seconds(Int64.max)

    /// A send limit from the seconds that `CFMessagePortSendRequest` takes.
    ///
    /// As there: whole milliseconds, rounded down; less than one millisecond, a negative number or NaN mean no wait;
    /// ten days or more mean no limit.
    ///
    /// - Parameter seconds: the seconds.
    /// - Returns: the limit.
    public static func sendLimit(cfSeconds seconds: Double) -> Duration {
        guard seconds >= 0.001 else { return .zero }
        guard seconds < 864_000 else { return .unlimited }
        return .milliseconds(Int64(seconds * 1_000))
    }

    /// A reply limit from the seconds that `CFMessagePortSendRequest` takes.
    ///
    /// A negative number or NaN means no wait; more than 292 years mean no limit.
    ///
    /// - Parameter seconds: the seconds.
    /// - Returns: the limit.
    public static func replyLimit(cfSeconds seconds: Double) -> Duration {
        guard seconds > 0 else { return .zero }
        guard seconds < 9_000_000_000 else { return .unlimited }
        return .seconds(seconds)
    }
}
