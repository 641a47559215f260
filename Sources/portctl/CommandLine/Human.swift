// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Durations and sizes as people write and read them.

/// A length of time: `1.5s`, `200ms`, `2m`; a bare number is seconds.
struct HumanDuration: Equatable {
    let duration: Duration

    private static let units: [(suffix: String, seconds: Double)] = [
        ("ns", 1e-9), ("us", 1e-6), ("\u{B5}s", 1e-6), ("ms", 1e-3), ("min", 60), ("m", 60), ("h", 3600), ("d", 86_400),
        ("s", 1), ("", 1),
    ]

    /// Parses a duration; nil when the text is none, or the duration is longer than a billion seconds.
    init?(_ text: String) {
        for unit in Self.units where text.hasSuffix(unit.suffix) {
            let number = text.dropLast(unit.suffix.count)
            guard number.utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }), let value = Double(number) else {
                continue
            }
            let seconds = value * unit.seconds
            guard (0...1e9).contains(seconds) else { return nil }
            duration = .seconds(seconds)
            return
        }
        return nil
    }

    /// A few digits and a unit: `870ns`, `12ms`, `1.5s`, `3m 20s`, `2d 4h`.
    static func text(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if seconds >= 86_400 { return "\(seconds / 86_400)d \(seconds / 3600 % 24)h" }
        if seconds >= 3600 { return "\(seconds / 3600)h \(seconds / 60 % 60)m" }
        if seconds >= 60 { return "\(seconds / 60)m \(seconds % 60)s" }
        let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
        let units: [(String, Double)] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)]
        let (unit, size) = units.first { nanoseconds >= $0.1 } ?? ("ns", 1)
        return HumanSize.digits(nanoseconds / size) + unit
    }
}

/// A number of bytes: `512`, `64K`, `1.5M`, `2GiB`; each letter is 1024 times the one before.
struct HumanSize: Equatable {
    let count: Int

    private static let letters = ["", "K", "M", "G", "T"]

    /// Parses a size; nil when the text is none.
    init?(_ text: String) {
        var number = text.uppercased()
        for ending in ["IB", "B"] where number.hasSuffix(ending) {
            number.removeLast(ending.count)
            break
        }
        var factor = 1.0
        if let power = Self.letters.dropFirst().firstIndex(where: { number.hasSuffix($0) }) {
            number.removeLast()
            for _ in 0..<power { factor *= 1024 }
        }
        guard number.utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }), let value = Double(number),
            value * factor <= 1e15
        else { return nil }
        count = Int((value * factor).rounded())
    }

    /// The number with its word: `1 byte`, `64 bytes`.
    static func bytes(_ count: Int) -> String { count == 1 ? "1 byte" : "\(count) bytes" }

    /// A few digits and a letter: `512`, `64.0K`, `1.5M`.
    static func text(_ count: Int) -> String {
        if count < 1024 { return String(count) }
        var (value, power) = (Double(count), 0)
        while value >= 1023.95, power < letters.count - 1 {
            value /= 1024
            power += 1
        }
        return digits(value) + letters[power]
    }

    /// At most one digit after the decimal point, and none from 100 on.
    static func digits(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        if tenths >= 1000 || tenths % 10 == 0 { return String(Int(value.rounded())) }
        return "\(tenths / 10).\(tenths % 10)"
    }
}
