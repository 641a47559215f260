// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The commands of portctl.
enum Command: String, CaseIterable {
    case list, info, send, request, serve, watch, activate, wait, trace, bench, doctor, completion, help
}

/// Everything that is known of a command. Parsing, help, completion, suggestions and the man page are made of this.
struct CommandDescription {
    /// Whether a command runs a program, whose words follow `--`.
    enum ProgramUse: Equatable {
        case none, optional, required
        /// A program in place of the arguments.
        case alternative
    }

    let command: Command
    let summary: String
    var arguments: [Argument] = []
    var program = ProgramUse.none
    var options: [Option] = []
    /// Further notes, a paragraph each.
    var notes: [String] = []

    var name: String { command.rawValue }

    /// The command's options, with those that every command has.
    var allOptions: [Option] { options + Option.common }

    /// The usage lines without the options: `send NAME ID [DATA]`.
    var synopses: [String] {
        let words = [name] + arguments.map(\.shown)
        let line = words.joined(separator: " ")
        return switch program {
        case .none: [line]
        case .optional: ["\(line) [-- COMMAND ...]"]
        case .required: ["\(line) -- COMMAND ..."]
        case .alternative: [line, "\(name) -- COMMAND ..."]
        }
    }
}

extension Command {
    var description: CommandDescription {
        // The table has every command: a test says so.
        CommandDescription.table.first { $0.command == self } ?? CommandDescription(command: self, summary: "")
    }
}
