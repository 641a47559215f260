// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Lines, words and bytes, as GNU wc counts them: a word is a run of characters between white space that has at least
/// one printable character, in the locale of the environment.
struct Counts: Equatable {
    var lines = 0
    var words = 0
    var bytes = 0

    static func + (left: Counts, right: Counts) -> Counts {
        Counts(lines: left.lines + right.lines, words: left.words + right.words, bytes: left.bytes + right.bytes)
    }

    /// The counts as the text of a message.
    var text: String { "\(lines) \(words) \(bytes)" }

    init(lines: Int = 0, words: Int = 0, bytes: Int = 0) {
        (self.lines, self.words, self.bytes) = (lines, words, bytes)
    }

    init?(text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 3 else { return nil }
        self.init(lines: numbers[0], words: numbers[1], bytes: numbers[2])
    }

    /// Counts lines, words and bytes.
    init(of bytes: [UInt8], in encoding: TextEncoding = .ofEnvironment) {
        self.bytes = bytes.count
        var isInWord = false
        encoding.forEachScalar(of: bytes) { scalar in
            if scalar == "\n" { lines += 1 }
            if scalar.separatesWords {
                words += isInWord ? 1 : 0
                isInWord = false
            } else if scalar.isPrintable {
                isInWord = true
            }
        }
        words += isInWord ? 1 : 0
    }
}

/// How bytes make characters, by the locale of the environment.
enum TextEncoding {
    case utf8
    /// Bytes above 127 are no characters, as in the C locale.
    case ascii

    static var ofEnvironment: TextEncoding {
        let locale = setlocale(LC_CTYPE, "").map { String(cString: $0) } ?? "C"
        return locale.uppercased().hasSuffix("UTF-8") || locale.uppercased().hasSuffix("UTF8") ? .utf8 : .ascii
    }

    /// Calls `body` for each character; skips bytes that are none.
    func forEachScalar(of bytes: [UInt8], _ body: (Unicode.Scalar) -> Void) {
        switch self {
        case .ascii:
            for byte in bytes where byte < 128 { body(Unicode.Scalar(byte)) }
        case .utf8:
            var iterator = bytes.makeIterator()
            var parser = Unicode.UTF8.ForwardParser()
            while true {
                switch parser.parseScalar(from: &iterator) {
                case .valid(let encoded): body(Unicode.UTF8.decode(encoded))
                case .error: continue
                case .emptyInput: return
                }
            }
        }
    }
}

extension Unicode.Scalar {
    /// As iswprint(3).
    fileprivate var isPrintable: Bool { CharacterClass.print.contains(self) }

    /// As wc(1) does: white space, and the no-break spaces and the word joiner, which the C library does not count as
    /// such.
    fileprivate var separatesWords: Bool {
        switch value {
        case 9...13, 32: true
        case 0xA0, 0x2007, 0x202F, 0x2060: isPrintable
        default: isPrintable && CharacterClass.space.contains(self)
        }
    }
}

/// A class of characters by the tables of the C library, which wc(1) uses too: another version of Unicode may have
/// other characters. Swift does not import <wctype.h>, so the functions are looked up.
private struct CharacterClass: Sendable {
    static let print = CharacterClass("iswprint")
    static let space = CharacterClass("iswspace")

    private let test: @convention(c) (UInt32) -> Int32

    init(_ name: String) {
        guard let function = dlsym(nil, name) else { leave("the C library has no \(name)") }
        test = unsafeBitCast(function, to: (@convention(c) (UInt32) -> Int32).self)
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool { test(scalar.value) != 0 }
}
