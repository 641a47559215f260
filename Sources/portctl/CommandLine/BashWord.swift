// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Words as bash's completion gives and takes them: as typed, with their quotes. zsh and fish take care of that
// themselves. Anybody of the user chooses the names of ports, so what is inserted must be one word, of which nothing is
// expanded.

/// A word of bash.
enum BashWord {
    /// The word without its quotes. Nothing is expanded; a quote need not be closed.
    static func unquoted(_ word: String) -> String {
        var text = ""
        var quote: Character?
        var rest = word[...]
        while let character = rest.popFirst() {
            switch (character, quote) {
            case ("\\", nil): rest.popFirst().map { text.append($0) }
            case ("\\", "\""):
                if let next = rest.first, !#""\$`"#.contains(next) { text.append("\\") }
                rest.popFirst().map { text.append($0) }
            case ("'", nil), ("\"", nil): quote = character
            case (quote, _): quote = nil
            default: text.append(character)
            }
        }
        return text
    }

    /// Those of some words that begin as what has been written, quoted as that has begun to be.
    static func candidates(_ words: [String], for written: String) -> [String] {
        let beginning = unquoted(written)
        return words.filter { $0.hasPrefix(beginning) }.map { quoted($0, in: written.first) }
    }

    /// What has to be written for a word, after a quote when it begins with one. Bash writes the quote at its end.
    private static func quoted(_ word: String, in quote: Character?) -> String {
        switch quote {
        case "'": word.replacing("'", with: #"'\''"#)
        case "\"":
            // An exclamation mark stands for a line of the history, unless it is in single quotes.
            word.map { #""\$`"#.contains($0) ? "\\\($0)" : $0 == "!" ? #""'!'""# : "\($0)" }.joined()
        default:
            word.map { !$0.isASCII || $0.isLetter || $0.isNumber || "_@%+=:,./-".contains($0) ? "\($0)" : "\\\($0)" }
                .joined()
        }
    }
}
