// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Words as bash's completion passes and expects them: as typed, with their quotes. zsh and fish quote by themselves.
// Any process of the user chooses the names of ports, so the inserted text must be one word, in which bash expands
// nothing. Bash works on bytes: a character keeps its meaning whatever follows it, such as a combining mark. So words
// are read and written scalar by scalar, never by what a reader sees as one character.

/// A word of bash.
enum BashWord {
    /// The word without its quotes. Nothing is expanded; a quote need not be closed.
    static func unquoted(_ word: String) -> String {
        var text = String.UnicodeScalarView()
        var quote: Unicode.Scalar?
        var rest = word.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch (scalar, quote) {
            case ("\\", nil): rest.popFirst().map { text.append($0) }
            case ("\\", "\""):
                if let next = rest.first, !#""\$`"#.unicodeScalars.contains(next) { text.append("\\") }
                rest.popFirst().map { text.append($0) }
            case ("'", nil), ("\"", nil): quote = scalar
            case (quote, _): quote = nil
            default: text.append(scalar)
            }
        }
        return String(text)
    }

    /// The words that begin with what has been written, quoted in the way in which the user has begun.
    static func candidates(_ words: [String], for written: String) -> [String] {
        let beginning = unquoted(written)
        return words.filter { $0.utf8.starts(with: beginning.utf8) }.map {
            quoted($0, in: written.unicodeScalars.first)
        }
    }

    /// The text to write for a word, after the opening quote when the user has typed one. Bash adds the closing quote.
    private static func quoted(_ word: String, in quote: Unicode.Scalar?) -> String {
        word.unicodeScalars.map { scalar in
            switch (quote, scalar) {
            case ("'", "'"): #"'\''"#
            case ("'", _): "\(scalar)"
            // An exclamation mark refers to the history, unless it is in single quotes.
            case ("\"", "!"): #""'!'""#
            case ("\"", _): #""\$`"#.unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
            default: isPlain(scalar) ? "\(scalar)" : "\\\(scalar)"
            }
        }.joined()
    }

    /// Whether a scalar has no special meaning for bash. None beyond ASCII has one.
    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": true
        default: !scalar.isASCII || "_@%+=:,./-".unicodeScalars.contains(scalar)
        }
    }
}
