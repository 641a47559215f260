// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
    private func value(_ option: String) -> String? {
        options[option] ?? command.description.allOptions.first { $0.name == option }?.value?.standard
    }

    func text(_ option: String) -> String? { value(option) }

    func count(_ option: String) -> Int? { value(option).flatMap { Int($0) } }

    func size(_ option: String) -> Int { value(option).flatMap { HumanSize($0)?.count } ?? 0 }

    func duration(_ option: String) -> Duration { value(option).flatMap { HumanDuration($0)?.duration } ?? .zero }

    /// The port's name.
    var name: String { arguments["NAME"] ?? "" }

    /// The message's id.
    var id: Int32 { arguments["ID"].flatMap { Int32($0) } ?? 0 }
}
