// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A word that a command takes, or the value of an option.
struct Argument: Equatable {
    let placeholder: String
    let kind: WordKind
    var isOptional = false
    /// The default, when the option is not given.
    var standard: String?

    /// Its form in usage lines.
    var shown: String { isOptional ? "[\(placeholder)]" : placeholder }
}

/// An option of a command.
struct Option: Equatable {
    /// Its name, with two dashes.
    let name: String
    var letter: Character?
    var value: Argument?
    let summary: String

    /// Its form in usage lines.
    var shown: String { value.map { "\(name) \($0.placeholder)" } ?? name }
}

extension Option {
    static func flag(_ name: String, _ letter: Character? = nil, _ summary: String) -> Option {
        Option(name: name, letter: letter, summary: summary)
    }

    static func option(
        _ name: String, _ letter: Character? = nil, _ placeholder: String, _ kind: WordKind, _ standard: String?,
        _ summary: String
    ) -> Option {
        Option(
            name: name, letter: letter, value: Argument(placeholder: placeholder, kind: kind, standard: standard),
            summary: summary)
    }

    /// The options that every command has.
    static let common: [Option] = [
        option(
            "--directory", nil, "DIR", .directory, nil, "the directory of names, an absolute path; the user's unless said"
        ),
        flag("--help", "h", "shows the help of the command"),
        flag("--version", nil, "shows the version"),
    ]

    static let json = flag("--json", "j", "writes JSON")
}
