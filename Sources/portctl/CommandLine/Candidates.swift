// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The possible completions of the last word of a command line, which is being written.
enum Candidates: Equatable {
    /// One of these words. It need not begin with what has been written: each shell selects in its own way.
    case words([Word])
    /// The path of a file.
    case files
    /// The path of a directory.
    case directories
    /// A word of another program's command line, which begins after `--`.
    case program

    struct Word: Equatable {
        let text: String
        /// What it does, or which process has it.
        var meaning = ""
    }

    /// Gives the names in a directory, and the processes that hold them.
    typealias Names = (_ directory: String?) -> [(name: String, owner: Int32)]

    /// Its name in the answer to the scripts.
    var kind: String {
        switch self {
        case .words: "words"
        case .files: "files"
        case .directories: "directories"
        case .program: "program"
        }
    }

    /// Finds them.
    ///
    /// - Parameters:
    ///   - line: the words after `portctl`, without quotes.
    ///   - names: called where a name, or its owner, is possible.
    init(_ line: [String], names: Names) {
        var context = CompletionContext()
        for word in line.dropLast() { context.pass(word) }
        self = context.candidates(for: line.last ?? "", names)
    }
}

/// A position in a command line. Wrong words are accepted as if they were right: the line is not finished.
private struct CompletionContext {
    private var command: CommandDescription?
    private var directory: String?
    /// How many of the command's arguments come before.
    private var count = 0
    /// The option whose value comes next.
    private var option: Option?
    private var isAfterDashes = false
    /// There is no such command, so nothing is known of the words that follow.
    private var isWrong = false

    mutating func pass(_ word: String) {
        if let option = option.take() {
            take(word, for: option)
        } else if word == "--", !isAfterDashes {
            isAfterDashes = true
        } else if isAfterDashes || !word.hasPrefix("-") || word == "-" || word.dropFirst().first?.isNumber == true {
            if command != nil {
                count += 1
            } else {
                command = Command(rawValue: word)?.description
                isWrong = command == nil
            }
        } else if let (option, value) = find(word) {
            if let value { take(value, for: option) } else { self.option = option }
        }
    }

    private mutating func take(_ value: String, for option: Option) {
        if option.value?.kind == .directory { directory = value }
    }

    /// The option that a word names, if it takes a value, and the value when the word contains it.
    private func find(_ word: String) -> (Option, value: String?)? {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let known = (command?.allOptions ?? []) + CommandDescription.table.flatMap(\.allOptions)
        let option = known.first { $0.name == parts[0] || $0.letter.map { "-\($0)" } == parts[0] }
        guard let option, option.value != nil else { return nil }
        return (option, parts.count == 2 ? parts[1] : nil)
    }

    func candidates(for word: String, _ names: Candidates.Names) -> Candidates {
        if isWrong { return .words([]) }
        if let kind = option?.value?.kind { return candidates(of: kind, names) }
        if isAfterDashes, let command, command.program != .none {
            // For `completion` the words there are not another program's.
            return command.command == .completion ? .words([]) : .program
        }
        if !isAfterDashes, word.hasPrefix("-") {
            if let (option, value) = find(word), value != nil, let kind = option.value?.kind {
                return candidates(of: kind, names)
            }
            return .words(
                (command?.allOptions ?? Option.common).map { Candidates.Word(text: $0.name, meaning: $0.summary) }
                    + dashes)
        }
        guard let command else { return candidates(of: .command, names) }
        if command.arguments.indices.contains(count) {
            let candidates = candidates(of: command.arguments[count].kind, names)
            guard command.program == .alternative, case .words(let words) = candidates else { return candidates }
            return .words(words + dashes)
        }
        return .words(dashes)
    }

    /// The `--` before the program that the command runs.
    private var dashes: [Candidates.Word] {
        guard let command, !isAfterDashes else { return [] }
        let isComplete = command.arguments.count <= count || command.program == .alternative && count == 0
        return command.program == .none || !isComplete
            ? [] : [Candidates.Word(text: "--", meaning: "a command follows")]
    }

    private func candidates(of kind: WordKind, _ names: Candidates.Names) -> Candidates {
        switch kind {
        case .file: return .files
        case .directory: return .directories
        case .shell: return .words(Shell.allCases.map { Candidates.Word(text: $0.rawValue) })
        case .command:
            return .words(CommandDescription.table.map { Candidates.Word(text: $0.name, meaning: $0.summary) })
        case .portName:
            // A name that cannot be typed is not offered, nor one that would be parsed as an option.
            let held = names(directory).filter { held in
                held.name.shown.utf8.elementsEqual(held.name.utf8)
                    && (isAfterDashes || held.name.unicodeScalars.first != "-")
            }
            return .words(held.map { Candidates.Word(text: $0.name, meaning: "process \($0.owner)") })
        case .processID:
            let owners = Dictionary(grouping: names(directory), by: \.owner).sorted { $0.key < $1.key }
            return .words(
                owners.map {
                    Candidates.Word(text: "\($0.key)", meaning: $0.value.map(\.name.shown).joined(separator: ", "))
                })
        case .messageID, .data, .duration, .size, .count: return .words([])
        }
    }
}

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
            word.hasPrefix("/") ? nil : "\(word) is no absolute path; write it from / on."
        case .messageID:
            Int32(word) == nil ? "\(word) is no message id: a number from \(Int32.min) to \(Int32.max)." : nil
        case .processID:
            Int32(word).map { $0 > 0 } ?? false ? nil : "\(word) is no process id: a number from 1 on."
        case .duration:
            Human.duration(word) == nil ? "\(word) is no duration: write 1.5s, 200ms, 2m, or a number of seconds." : nil
        case .size: Human.size(word) == nil ? "\(word) is no size: write 512, 64K, 1.5M." : nil
        case .count: Int(word).map { $0 > 0 } ?? false ? nil : "\(word) is no count: a number from 1 on."
        case .shell:
            Shell(rawValue: word) == nil ? "\(word) is no shell that is known here: bash, zsh or fish." : nil
        }
    }
}

/// A shell whose completion can be written.
enum Shell: String, CaseIterable {
    case bash, zsh, fish
}
