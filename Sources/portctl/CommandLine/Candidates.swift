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
    /// The command and its arguments that come before.
    private var words: [String] = []
    private var directory: String?
    /// The option whose value comes next.
    private var option: Option?
    private var isAfterDashes = false

    private var command: CommandDescription? { words.first.flatMap { Command(rawValue: $0) }?.description }

    mutating func pass(_ word: String) {
        if let option = option.take() {
            note(word, for: option)
        } else if word == "--", !isAfterDashes {
            isAfterDashes = true
        } else if isAfterDashes || !word.hasPrefix("-") || word == "-" || word.dropFirst().first?.isNumber == true {
            words = command == nil ? [word] : words + [word]
        } else if let (option, value) = find(word) {
            if let value { note(value, for: option) } else { self.option = option }
        }
    }

    private mutating func note(_ value: String, for option: Option) {
        if option.value?.kind == .directory { directory = value }
    }

    /// The option that a word names, if it takes a value, and the value when the word contains it.
    private func find(_ word: String) -> (Option, value: String?)? {
        let parts = Option.parts(of: word)
        guard let option = Option.named(parts[0], of: command), option.value != nil else { return nil }
        return (option, parts.count == 2 ? parts[1] : nil)
    }

    func candidates(for word: String, _ names: Candidates.Names) -> Candidates {
        // Nothing is known of the words that follow a wrong command.
        if command == nil, !words.isEmpty { return .words([]) }
        if let kind = option?.value?.kind { return candidates(of: kind, names) }
        if isAfterDashes, let command, command.program != .none {
            // For `completion` the words there are not another program's.
            return command.command == .completion ? .words([]) : .program
        }
        if !isAfterDashes, word.hasPrefix("-") {
            if let (option, value) = find(word), value != nil, let kind = option.value?.kind {
                return candidates(of: kind, names)
            }
            let options = command?.allOptions ?? Option.common
            return .words(options.map { .init(text: $0.name, meaning: $0.summary) } + dashes)
        }
        guard let command else { return candidates(of: .command, names) }
        if let argument = command.arguments.dropFirst(words.count - 1).first {
            let candidates = candidates(of: argument.kind, names)
            guard command.program == .alternative, case .words(let words) = candidates else { return candidates }
            return .words(words + dashes)
        }
        return .words(dashes)
    }

    /// The `--` before the program that the command runs.
    private var dashes: [Candidates.Word] {
        guard let command, !isAfterDashes else { return [] }
        let isComplete = command.arguments.count < words.count || command.program == .alternative && words.count == 1
        return command.program == .none || !isComplete ? [] : [.init(text: "--", meaning: "a command follows")]
    }

    private func candidates(of kind: WordKind, _ names: Candidates.Names) -> Candidates {
        switch kind {
        case .file: return .files
        case .directory: return .directories
        case .shell: return .words(Shell.allCases.map { .init(text: $0.rawValue) })
        case .command: return .words(CommandDescription.table.map { .init(text: $0.name, meaning: $0.summary) })
        case .portName:
            // A name that cannot be typed is not offered, nor one that would be parsed as an option.
            let held = names(directory).filter { held in
                held.name.shown.utf8.elementsEqual(held.name.utf8)
                    && (isAfterDashes || held.name.unicodeScalars.first != "-")
            }
            return .words(held.map { .init(text: $0.name, meaning: "process \($0.owner)") })
        case .processID:
            let owners = Dictionary(grouping: names(directory), by: \.owner).sorted { $0.key < $1.key }
            return .words(
                owners.map { .init(text: "\($0.key)", meaning: $0.value.map(\.name.shown).joined(separator: ", ")) })
        case .messageID, .data, .duration, .size, .count: return .words([])
        }
    }
}
