// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Durations and sizes as people write and read them.

extension Duration {
    private static let units: [(suffix: String, seconds: Double)] = [
        ("ns", 1e-9), ("us", 1e-6), ("\u{B5}s", 1e-6), ("ms", 1e-3), ("min", 60), ("m", 60), ("h", 3600), ("d", 86_400),
        ("s", 1), ("", 1),
    ]

    /// Parses a duration, such as `1.5s`, `200ms`, `2m`; a bare number is seconds. Nil when the text is none, or the
    /// duration is longer than a billion seconds.
    init?(written text: String) {
        for unit in Self.units where text.hasSuffix(unit.suffix) {
            guard let value = number(text.dropLast(unit.suffix.count)) else { continue }
            let seconds = value * unit.seconds
            guard (0...1e9).contains(seconds) else { return nil }
            self = .seconds(seconds)
            return
        }
        return nil
    }

    /// A few digits and a unit: `870ns`, `12ms`, `1.5s`, `3m 20s`, `2d 4h`.
    var shown: String {
        let (seconds, attoseconds) = components
        if seconds >= 86_400 { return "\(seconds / 86_400)d \(seconds / 3600 % 24)h" }
        if seconds >= 3600 { return "\(seconds / 3600)h \(seconds / 60 % 60)m" }
        if seconds >= 60 { return "\(seconds / 60)m \(seconds % 60)s" }
        let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
        let units: [(String, Double)] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)]
        let (unit, size) = units.first { nanoseconds >= $0.1 } ?? ("ns", 1)
        return digits(nanoseconds / size) + unit
    }
}

extension Int {
    private static let letters = ["", "K", "M", "G", "T"]

    /// Parses a number of bytes, such as `512`, `64K`, `1.5M`, `2GiB`: each letter is 1024 times the one before. Nil
    /// when the text is none.
    init?(size text: String) {
        var digits = text.uppercased()
        for ending in ["IB", "B"] where digits.hasSuffix(ending) {
            digits.removeLast(ending.count)
            break
        }
        var factor = 1.0
        if let power = Self.letters.dropFirst().firstIndex(where: { digits.hasSuffix($0) }) {
            digits.removeLast()
            for _ in 0..<power { factor *= 1024 }
        }
        guard let value = number(digits), value * factor <= 1e15 else { return nil }
        self = Int((value * factor).rounded())
    }

    /// This number of bytes as a few digits and a letter: `512`, `64K`, `1.5M`.
    var shownAsSize: String {
        if self < 1024 { return String(self) }
        var (value, power) = (Double(self), 0)
        while value >= 1023.95, power < Self.letters.count - 1 {
            value /= 1024
            power += 1
        }
        return digits(value) + Self.letters[power]
    }
}

private func number(_ text: some StringProtocol) -> Double? {
    text.utf8.allSatisfy { (48...57).contains($0) || $0 == 46 } ? Double(text) : nil
}

/// At most one digit after the decimal point, and none from 100 on.
private func digits(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    if tenths >= 1000 || tenths % 10 == 0 { return String(Int(value.rounded())) }
    return "\(tenths / 10).\(tenths % 10)"
}
