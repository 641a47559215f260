// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Words as bash's completion gives and takes them: as typed, with their quotes. zsh and fish take care of that
// themselves. Anybody of the user chooses the names of ports, so what is inserted must be one word, of which nothing is
// expanded. Bash knows bytes: what follows a sign, such as a combining mark, takes nothing of its meaning away. So words
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

    /// Those of some words that begin as what has been written, quoted as that has begun to be.
    static func candidates(_ words: [String], for written: String) -> [String] {
        let beginning = unquoted(written)
        return words.filter { $0.utf8.starts(with: beginning.utf8) }.map {
            quoted($0, in: written.unicodeScalars.first)
        }
    }

    /// What has to be written for a word, after a quote when it begins with one. Bash writes the quote at its end.
    private static func quoted(_ word: String, in quote: Unicode.Scalar?) -> String {
        word.unicodeScalars.map { scalar in
            switch (quote, scalar) {
            case ("'", "'"): #"'\''"#
            case ("'", _): "\(scalar)"
            // An exclamation mark stands for a line of the history, unless it is in single quotes.
            case ("\"", "!"): #""'!'""#
            case ("\"", _): #""\$`"#.unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
            default: isPlain(scalar) ? "\(scalar)" : "\\\(scalar)"
            }
        }.joined()
    }

    /// Whether a scalar has no meaning for bash. Of those beyond ASCII none has.
    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": true
        default: !scalar.isASCII || "_@%+=:,./-".unicodeScalars.contains(scalar)
        }
    }
}
