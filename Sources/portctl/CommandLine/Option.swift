// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The kind of a word in a command line. Parsing checks words against it, completion offers words of it.
enum WordKind: Equatable {
    case portName
    case messageID
    case processID
    case data
    case file
    case directory
    case duration
    case size
    case count
    case shell
    case command

    /// Why a word is none of this kind; nil when it is one.
    func objection(to word: String) -> String? {
        switch self {
        case .data, .file, .command: nil
        case .portName:
            if word.isEmpty {
                "A name must not be empty."
            } else if word.utf8.count > PortName.limit {
                "A name has at most \(PortName.limit) bytes; this one has \(word.utf8.count)."
            } else {
                nil
            }
        case .directory:
            word.utf8.first == UInt8(ascii: "/") ? nil : "\(word) is no absolute path; write it from / on."
        case .messageID:
            Int32(word) == nil ? "\(word) is no message id: a number from \(Int32.min) to \(Int32.max)." : nil
        case .processID:
            Int32(word).map { $0 > 0 } ?? false ? nil : "\(word) is no process id: a number from 1 on."
        case .duration:
            Duration(written: word) == nil
                ? "\(word) is no duration: write 1.5s, 200ms, 2m, or a number of seconds." : nil
        case .size: Int(size: word) == nil ? "\(word) is no size: write 512, 64K, 1.5M." : nil
        case .count: Int(word).map { $0 > 0 } ?? false ? nil : "\(word) is no count: a number from 1 on."
        case .shell:
            Shell(rawValue: word) == nil ? "\(word) is no shell that is known here: bash, zsh or fish." : nil
        }
    }
}

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
            "--directory", nil, "DIR", .directory, nil,
            "the directory of names, an absolute path; the user's unless said"),
        flag("--help", "h", "shows the help of the command"),
        flag("--version", nil, "shows the version"),
    ]

    /// The options of all commands, those of several commands several times.
    static let all = CommandDescription.table.flatMap(\.allOptions)

    /// The option that a word means, its name or a dash and its letter: an option of the command, if that is known, or
    /// of any command.
    static func named(_ word: String, of command: CommandDescription?) -> Option? {
        ((command?.allOptions ?? []) + all).first { option in
            word == option.name || option.letter.map { word == "-\($0)" } ?? false
        }
    }

    /// The parts of a word before and after its first equals sign; the whole word when it has none.
    static func parts(of word: String) -> [String] {
        // By bytes: a character may be an equals sign with an accent.
        word.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false).map {
            String(Substring($0))
        }
    }

    static let json = flag("--json", "j", "writes JSON")
}
