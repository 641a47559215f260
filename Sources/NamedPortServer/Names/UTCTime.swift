// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A date and time in UTC, in whole seconds, that prints as ISO 8601 says: `2026-11-21T14:37:10Z`.
public struct UTCTime: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Seconds since the beginning of 1970, leap seconds not counted.
    public let secondsSince1970: Int64

    /// Makes a time.
    ///
    /// - Parameter secondsSince1970: seconds since the beginning of 1970.
    public init(secondsSince1970: Int64) {
        self.secondsSince1970 = secondsSince1970
    }

    /// The time that comes that long after the beginning of 1970.
    init(_ duration: Duration) {
        self.init(secondsSince1970: duration.components.seconds)
    }

    /// Whether the left time comes before the right.
    public static func < (left: UTCTime, right: UTCTime) -> Bool { left.secondsSince1970 < right.secondsSince1970 }

    /// The date and time.
    public var description: String {
        func digits(_ value: Int64, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let days = Self.floorDivide(secondsSince1970, by: 86_400)
        let second = secondsSince1970 - days * 86_400
        let (year, month, day) = Self.date(daysSince1970: days)
        return "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
            + "T\(digits(second / 3600, 2)):\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2))Z"
    }

    private static func floorDivide(_ number: Int64, by divisor: Int64) -> Int64 {
        number / divisor - (number % divisor < 0 ? 1 : 0)
    }

    /// The Gregorian date.
    private static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        var year = 1970 + floorDivide(days * 400, by: 146_097)  // off by one at most: 400 years have 146,097 days
        while daysBefore(year) > days { year -= 1 }
        while daysBefore(year + 1) <= days { year += 1 }
        let isLeap = daysBefore(year + 1) - daysBefore(year) == 366
        var (month, rest) = (Int64(1), days - daysBefore(year))
        for length: Int64 in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if rest < length { break }
            rest -= length
            month += 1
        }
        return (year, month, rest + 1)
    }

    /// The days from the beginning of 1970 to that of another year.
    private static func daysBefore(_ year: Int64) -> Int64 {
        func leapDays(_ year: Int64) -> Int64 {
            floorDivide(year, by: 4) - floorDivide(year, by: 100) + floorDivide(year, by: 400)
        }
        return 365 * (year - 1970) + leapDays(year - 1) - leapDays(1969)
    }
}
