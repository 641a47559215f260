// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// A parsed command line.
struct Invocation: Equatable {
    var command: Command
    /// The words of the command's arguments, by their placeholders.
    var arguments: [String: String] = [:]
    /// The values of the given options, by their names; empty for an option without a value.
    var options: [String: String] = [:]
    /// The command to run, and its arguments.
    var program: [String] = []
}

/// A command line that is not valid.
struct UsageError: Error, Equatable {
    let sentence: String
    /// The command whose help explains more.
    var command: Command?

    /// The message: one line.
    var line: String {
        "\(sentence) Try: portctl help\(command.map { " \($0.rawValue)" } ?? "")"
    }
}

extension Invocation {
    func has(_ option: String) -> Bool { options[option] != nil }

    /// The option's value, or its default.
    func text(_ option: String) -> String? {
        options[option] ?? command.description.allOptions.first { $0.name == option }?.value?.standard
    }

    func count(_ option: String) -> Int? { text(option).flatMap { Int($0) } }

    func size(_ option: String) -> Int { text(option).flatMap { Int(size: $0) } ?? 0 }

    func duration(_ option: String) -> Duration { text(option).flatMap { Duration(written: $0) } ?? .zero }

    /// The port's name.
    var name: String { arguments["NAME"] ?? "" }

    /// The message's id.
    var id: Int32 { arguments["ID"].flatMap { Int32($0) } ?? 0 }

    /// How many bytes a message may have that expects no reply. A port discards a longer one silently, unless its owner
    /// allows it more.
    static let silentLimit = PeerLimits.standard.messageBytes - 8
}

// MARK: - Parsing

extension Invocation {
    /// Parses a command line, without the program's name.
    init(_ words: [String]) throws(UsageError) {
        var parser = Parser()
        try parser.read(words)
        self = try parser.invocation()
    }
}

/// Separates options from other words. Options may come before and after the command.
private struct Parser {
    private var words: [String] = []
    /// Each option, and how it was typed: `--name` or `-n`.
    private var options: [(option: Option, typed: String, value: String)] = []
    /// The words after `--`.
    private var rest: [String]?

    private var command: Command? { words.first.flatMap { Command(rawValue: $0) } }

    mutating func read(_ line: [String]) throws(UsageError) {
        var line = line[...]
        while let word = line.popFirst() {
            if word == "--" {
                rest = Array(line)
                return
            }
            guard Self.isOption(word) else {
                words.append(word)
                continue
            }
            try readOption(word, &line)
        }
    }

    /// Parses `--name`, `--name value`, `--name=value`, `-n value`, `-n=value`, `-nvalue`, and several letters
    /// together.
    private mutating func readOption(_ word: String, _ line: inout ArraySlice<String>) throws(UsageError) {
        let parts = Option.parts(of: word)
        if !word.hasPrefix("--"), word.count > 2, parts[0].count > 2,
            let option = Option.named(String(word.prefix(2)), of: command?.description)
        {
            let (letter, rest) = (String(word.prefix(2)), String(word.dropFirst(2)))
            if option.value != nil { return options.append((option, letter, rest)) }
            options.append((option, letter, ""))
            return try readOption("-" + rest, &line)
        }
        let option = try find(parts[0])
        guard option.value != nil else {
            if parts.count == 2 { throw UsageError(sentence: "\(option.name) takes no value.", command: command) }
            return options.append((option, parts[0], ""))
        }
        guard let value = parts.count == 2 ? parts[1] : line.popFirst() else {
            throw UsageError(sentence: "\(option.name) needs a value.", command: command)
        }
        options.append((option, parts[0], value))
    }

    /// A dash alone means standard input, and a dash before a digit is a sign.
    private static func isOption(_ word: String) -> Bool {
        guard word.count > 1, word.first == "-", let second = word.dropFirst().first else { return false }
        return !("0"..."9").contains(second)
    }

    private func find(_ word: String) throws(UsageError) -> Option {
        if let option = Option.named(word, of: command?.description) { return option }
        if !word.hasPrefix("--") { throw Self.unknown(letter: word, command) }
        throw Self.unknown(
            "There is no option \(word).", word, among: (command?.description.allOptions ?? Option.all).map(\.name),
            command)
    }

    /// A word with one dash may be intended as data.
    private static func unknown(letter word: String, _ command: Command?) -> UsageError {
        let acceptsProgram = command.map { $0.description.program != .none } ?? false
        return UsageError(
            sentence: "There is no option \(word)\(acceptsProgram ? "." : "; after -- nothing is an option.")",
            command: command)
    }

    private static func unknown(
        _ sentence: String, _ word: String, among candidates: [String], _ command: Command? = nil
    ) -> UsageError {
        let nearest = word.nearest(of: candidates)
        return UsageError(sentence: sentence + (nearest.map { " Did you mean \($0)?" } ?? ""), command: command)
    }

    private static func unknown(command word: String) -> UsageError {
        unknown("There is no command \(word).", word, among: Command.allCases.map(\.rawValue))
    }

    func invocation() throws(UsageError) -> Invocation {
        if options.contains(where: { $0.option.name == "--version" }) {
            return Invocation(command: .help, options: ["--version": ""])
        }
        let asksForHelp = options.contains { $0.option.name == "--help" }
        guard let first = words.first else {
            if asksForHelp { return Invocation(command: .help) }
            throw UsageError(sentence: "A command is missing.")
        }
        guard let command else {
            if first == "version" { throw UsageError(sentence: "There is no command version. Did you mean --version?") }
            throw Self.unknown(command: first)
        }
        if asksForHelp { return Invocation(command: .help, arguments: ["COMMAND": command.rawValue]) }
        var invocation = Invocation(command: command)
        try applyOptions(&invocation)
        try applyArguments(&invocation)
        return invocation
    }

    private func applyOptions(_ invocation: inout Invocation) throws(UsageError) {
        let description = invocation.command.description
        for (option, typed, value) in options {
            guard let own = description.allOptions.first(where: { $0.name == option.name }) else {
                if !typed.hasPrefix("--") { throw Self.unknown(letter: typed, invocation.command) }
                throw Self.unknown(
                    "\(description.name) has no option \(option.name).", option.name,
                    among: description.allOptions.map(\.name), invocation.command)
            }
            if own.value != nil, value.isEmpty {
                throw UsageError(sentence: "\(own.name) needs a value.", command: invocation.command)
            }
            if let objection = own.value?.kind.objection(to: value) {
                throw UsageError(sentence: "\(own.name): \(objection)", command: invocation.command)
            }
            invocation.options[own.name] = value
        }
    }

    private func applyArguments(_ invocation: inout Invocation) throws(UsageError) {
        let description = invocation.command.description
        func fail(_ sentence: String) -> UsageError { UsageError(sentence: sentence, command: invocation.command) }
        var given = words.dropFirst()
        if description.program == .none { given += rest ?? [] } else { invocation.program = rest ?? [] }
        let replaces = description.program == .alternative && !invocation.program.isEmpty
        for argument in replaces ? [] : description.arguments {
            guard let word = given.popFirst() else {
                if argument.isOptional { break }
                throw fail("\(description.name) needs \(argument.placeholder).")
            }
            if let objection = argument.kind.objection(to: word) { throw fail(objection) }
            if argument.kind == .command, Command(rawValue: word) == nil {
                throw Self.unknown(command: word)
            }
            invocation.arguments[argument.placeholder] = word
        }
        if let word = given.first { throw fail("\(description.name) has no use for \(word).") }
        if description.program == .required, invocation.program.isEmpty {
            throw fail("\(description.name) needs -- and a command.")
        }
        if let objection = invocation.contradiction { throw fail(objection) }
    }
}

extension Invocation {
    /// Which parts of the command line contradict each other; nil when none do.
    fileprivate var contradiction: String? {
        if arguments["DATA"] != nil, has("--file") { return "\(command.rawValue) takes DATA or --file, not both." }
        if has("--hex"), has("--raw") { return "\(command.rawValue) takes --hex or --raw, not both." }
        if command == .list, !has("--watch"), let option = ["--count", "--interval"].first(where: { has($0) }) {
            return "list takes \(option) only with --watch."
        }
        if command == .list, has("--names"), has("--timeout") {
            return "list takes no --timeout with --names: no owner is asked."
        }
        if command == .trace, !program.isEmpty, has("--duration") {
            return "trace takes no --duration with a command, which is recorded until it ends."
        }
        return nil
    }
}

extension String {
    /// The word that the user probably meant by this one: the nearest of the candidates; nil when none is near.
    func nearest(of candidates: [String]) -> String? {
        let ranked = candidates.map { (candidate: $0, distance: editDistance(to: $0)) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        if best.distance <= max(1, count / 3) { return best.candidate }
        // The user may have written only the beginning of a word, or more than the word.
        return count > 2 ? candidates.first { $0.hasPrefix(self) || hasPrefix($0) } : nil
    }

    /// How many letters were omitted, added, changed, or swapped with the next.
    func editDistance(to other: String) -> Int {
        let (left, right) = (Array(self), Array(other))
        var (before, last) = ([Int](), Array(0...right.count))
        for row in left.indices {
            var line = [row + 1]
            for column in right.indices {
                let change = last[column] + (left[row] == right[column] ? 0 : 1)
                var best = Swift.min(change, last[column + 1] + 1, line[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    best = Swift.min(best, before[column - 1] + 1)
                }
                line.append(best)
            }
            (before, last) = (last, line)
        }
        return last[right.count]
    }
}
