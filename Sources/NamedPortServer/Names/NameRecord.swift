// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What the file of a held name says, in UTF-8, each line ended by a line feed:
//
//     swift-port-name 1                  the format and its version
//     owner 4711                         the process that holds the name
//     since 86400                        when it was registered: whole seconds on CLOCK_MONOTONIC, since the machine
//                                        started
//     socket 61 /run/user/1000/swift-ports/sockets/…
//                                        the byte count of the path, the path (it may hold any byte but NUL)
//     end
//
// Numbers are decimal, without sign and leading zeros. A record has exactly this one form: bytes that differ from it
// anywhere, such as a record that is written only in part, are no record. The lock of the file, not the record, says
// whether the name is held.

/// What a held name's file says about its owner.
package struct NameRecord: Hashable, Sendable {
    /// The process that holds the name.
    package let owner: Int32
    /// When the name was registered: seconds on the monotonic clock, as in `MonotonicInstant`. Never negative.
    package let since: Int64
    /// The absolute path of the port's socket.
    package let socketPath: String

    /// Makes a record; nil when a part is out of range: a process id below 1, a negative moment, a path that is
    /// relative, holds a NUL or has more than `pathLimit` bytes.
    package init?(owner: Int32, since: Int64, socketPath: String) {
        let bytes = socketPath.utf8
        guard owner > 0, since >= 0, bytes.first == UInt8(ascii: "/"), bytes.count <= Self.pathLimit, !bytes.contains(0)
        else { return nil }
        self.owner = owner
        self.since = since
        self.socketPath = socketPath
    }

    /// How many bytes a path may have: `PATH_MAX` without its NUL.
    package static let pathLimit = 4095
}

extension NameRecord {
    private static let version = 1

    /// The record as the file holds it.
    package var contents: [UInt8] {
        let head = "swift-port-name \(Self.version)\nowner \(owner)\nsince \(since)\nsocket \(socketPath.utf8.count) "
        return Array((head + socketPath + "\nend\n").utf8)
    }

    /// Parses a record; nil for every sequence of bytes that is not one.
    package init?(contents: [UInt8]) {
        var rest = contents[...]
        func field(_ key: String, endedBy end: Unicode.Scalar) -> Int64? {
            guard rest.starts(with: key.utf8) else { return nil }
            rest = rest.dropFirst(key.utf8.count)
            guard let stop = rest.firstIndex(of: UInt8(ascii: end)) else { return nil }
            let digits = rest[..<stop]
            rest = rest[(stop + 1)...]
            return digits.count <= 19 ? Int64(String(decoding: digits, as: UTF8.self)) : nil
        }
        guard field("swift-port-name ", endedBy: "\n") == Int64(Self.version),
            let owner = field("owner ", endedBy: "\n").flatMap({ Int32(exactly: $0) }),
            let since = field("since ", endedBy: "\n"),
            let count = field("socket ", endedBy: " "), (0...Int64(Self.pathLimit)).contains(count),
            let path = String(validating: rest.prefix(Int(count)), as: UTF8.self),
            let record = NameRecord(owner: owner, since: since, socketPath: path), record.contents == contents
        else { return nil }
        self = record
    }
}

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
