// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Lines, words and bytes, as GNU wc counts them: a word is a run of characters between white space that has at least one
/// printable character, in the locale of the environment.
struct Counts: Equatable {
    var lines = 0
    var words = 0
    var bytes = 0

    static func + (left: Counts, right: Counts) -> Counts {
        Counts(lines: left.lines + right.lines, words: left.words + right.words, bytes: left.bytes + right.bytes)
    }

    /// As they travel in a message.
    var text: String { "\(lines) \(words) \(bytes)" }

    init(lines: Int = 0, words: Int = 0, bytes: Int = 0) {
        (self.lines, self.words, self.bytes) = (lines, words, bytes)
    }

    init?(text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 3 else { return nil }
        self.init(lines: numbers[0], words: numbers[1], bytes: numbers[2])
    }

    /// Counts the bytes.
    init(of bytes: [UInt8]) {
        self.bytes = bytes.count
        var isInWord = false
        forEachCharacter(of: bytes) { character in
            if character == 10 { lines += 1 }
            if (9...13).contains(character) || character == 32 || (isprint(character) && isspace(character)) {
                words += isInWord ? 1 : 0
                isInWord = false
            } else if isprint(character) {
                isInWord = true
            }
        }
        words += isInWord ? 1 : 0
    }
}

private func isprint(_ character: UInt32) -> Bool { iswprint(wint_t(character)) != 0 }

/// White space, and the spaces that wc(1) counts as such though the C library does not.
private func isspace(_ character: UInt32) -> Bool {
    iswspace(wint_t(character)) != 0 || [0xA0, 0x2007, 0x202F, 0x2060].contains(character)
}

/// Calls `body` for each character of the locale's encoding; bytes that are no character are passed over.
private func forEachCharacter(of bytes: [UInt8], _ body: (UInt32) -> Void) {
    var state = mbstate_t()
    bytes.withUnsafeBytes { raw in
        guard let start = raw.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
        var position = 0
        while position < raw.count {
            var character = wchar_t()
            switch mbrtowc(&character, start + position, raw.count - position, &state) {
            case -1:
                state = mbstate_t()
                position += 1
            case -2: return
            case let length:
                body(UInt32(bitPattern: character))
                position += max(1, length)
            }
        }
    }
}
