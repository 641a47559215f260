// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension String {
    /// The text without characters that would move a terminal's cursor or break a line.
    var shown: String { harmlessText(self) }

    /// How many cells of a terminal it occupies.
    var cells: Int { reduce(0) { $0 + $1.cells } }

    /// Its beginning in at most `limit` cells, with an ellipsis when something is omitted.
    func cut(to limit: Int) -> String {
        if cells <= limit { return self }
        var (text, room) = ("", limit - 1)
        for character in self {
            room -= character.cells
            if room < 0 { break }
            text.append(character)
        }
        return limit > 0 ? text + "\u{2026}" : ""
    }

    /// The text with spaces on one side, in at least `width` cells.
    func padded(to width: Int, onTheLeft: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - cells))
        return onTheLeft ? space + self : self + space
    }
}

extension Character {
    /// Two for East Asian characters, and for pictures.
    fileprivate var cells: Int {
        guard let scalar = unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0..<0x1100: return 1
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}

extension Sequence<String> {
    /// The lines, each with its end.
    func joinedLines() -> String { map { $0 + "\n" }.joined() }
}

// Bytes as people read them.
extension Collection<UInt8> {
    /// The text; nil when the bytes are no text, or contain what a terminal obeys or a reader does not see: control
    /// characters other than tabs and line ends, and format characters, such as a change of direction, except those
    /// that join letters.
    var readableText: String? {
        guard let text = String(validating: self, as: UTF8.self) else { return nil }
        let isText = text.unicodeScalars.allSatisfy { scalar in
            switch scalar {
            case "\n", "\t", "\u{200C}", "\u{200D}": return true
            default: break
            }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: return false
            default: return true
            }
        }
        return isText ? text : nil
    }

    /// Two hexadecimal digits for each byte.
    func hexDigits(separator: String = "") -> String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: separator)
    }
}

extension [UInt8] {
    /// Sixteen bytes a line: the offset, the bytes in hexadecimal, and those that are ASCII.
    var hexDump: String {
        stride(from: 0, to: count, by: 16).map { start in
            let line = self[start..<Swift.min(start + 16, count)]
            let offset = String(start, radix: 16)
            let text = line.map { (32...126).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
            return String(repeating: "0", count: Swift.max(0, 8 - offset.utf8.count)) + offset
                + "  \(line.hexDigits(separator: " ").padded(to: 47))  \(text)"
        }.joinedLines()
    }
}
