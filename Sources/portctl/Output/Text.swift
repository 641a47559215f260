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

/// Bytes as people read them.
enum Bytes {
    /// The text; nil when the bytes are no text, or contain what a terminal obeys or a reader does not see: control
    /// characters other than tabs and line ends, and format characters, such as a change of direction, except those
    /// that join letters.
    static func text(_ bytes: [UInt8]) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
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

    /// Sixteen bytes a line: the offset, the bytes in hexadecimal, and those that are ASCII.
    static func hex(_ bytes: [UInt8]) -> String {
        func digits(_ value: Int, _ count: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        return stride(from: 0, to: bytes.count, by: 16).map { start in
            let line = bytes[start..<min(start + 16, bytes.count)]
            let cells = line.map { digits(Int($0), 2) }.joined(separator: " ").padded(to: 47)
            let text = line.map { (32...126).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
            return "\(digits(start, 8))  \(cells)  \(text)\n"
        }.joined()
    }
}
