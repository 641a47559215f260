// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The texts of `portctl help`, and the manual page.
enum Help {
    static let version = "portctl 0.1 (unreleased)"

    /// The meanings of the exit statuses; a failure has the first that fits.
    static let statuses: [(ExitStatus, String)] = [
        (.done, "done"),
        (.failure, "a port or a system call failed"),
        (.absent, "no live port has the name, or its owner went away"),
        (.timedOut, "there was no room, no reply, or no such name before the limit"),
        (.refused, "the receiver answered with an error, or let the request go"),
        (.usage, "the command line is wrong"),
    ]

    /// The exit status of the commands that run a program.
    static let statusNote =
        "activate --once and trace -- COMMAND end with the status of the command, 128 and the signal's number when a signal "
        + "ended it; trace with 1 when it left no trace. activate ends with 0 at a signal, and with 1 when it gives the "
        + "command up."

    private static let forms =
        "Durations are written 1.5s, 200ms, 2m, or as a number of seconds; sizes 512, 64K, 1.5M. After -- nothing is an "
        + "option."

    /// The usage lines and summaries of all commands.
    static func overview(width: Int = 100) -> String {
        let synopses = CommandDescription.table.map { ($0, $0.synopses) }
        let column = synopses.flatMap(\.1).map(\.count).max() ?? 0
        var lines = ["usage: portctl COMMAND ...", ""]
        for (description, texts) in synopses {
            for text in texts.dropLast() { lines.append("  " + text) }
            lines += hanging(texts.last ?? "", description.summary, column: column, width: width)
        }
        lines += ["", "Options of every command:"] + options(Option.common, width: width)
        lines += [""] + wrapped(forms, width: width) + ["", "Exit status:"]
        for (status, meaning) in statuses { lines += hanging("\(status.rawValue)", meaning, column: 2, width: width) }
        lines += [""] + wrapped(statusNote, width: width)
        lines += ["", "portctl help COMMAND describes one."]
        return lines.joinedLines()
    }

    /// The help of one command.
    static func text(of description: CommandDescription, width: Int = 100) -> String {
        var lines = description.synopses.enumerated().map { ($0 == 0 ? "usage: " : "       ") + "portctl \($1)" }
        lines += [""] + wrapped(sentence(description.summary), width: width)
        lines += ["", "Options:"] + options(description.allOptions, width: width)
        for note in description.notes { lines += [""] + wrapped(note, width: width) }
        return lines.joinedLines()
    }

    static func sentence(_ summary: String) -> String {
        "portctl \(summary)."
    }

    /// An option's summary, with its default value.
    static func summary(of option: Option) -> String {
        option.summary + (option.value?.standard.map { " (\($0))" } ?? "")
    }

    private static func options(_ options: [Option], width: Int) -> [String] {
        let shown = options.map { option in (option.letter.map { "-\($0), " } ?? "    ") + option.shown }
        let column = shown.map(\.count).max() ?? 0
        return zip(options, shown).flatMap { hanging($1, summary(of: $0), column: column, width: width) }
    }

    /// A term and its meaning, side by side.
    private static func hanging(_ term: String, _ text: String, column: Int, width: Int) -> [String] {
        let indent = String(repeating: " ", count: column + 4)
        let lines = wrapped(text, width: max(20, width - column - 4))
        let first = "  " + term + String(repeating: " ", count: max(0, column - term.count) + 2) + (lines.first ?? "")
        return [first] + lines.dropFirst().map { indent + $0 }
    }

    /// The text in lines no longer than the width, as far as its words allow.
    static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return line.isEmpty ? lines : lines + [line]
    }
}

// MARK: - ManualPage

extension Help {
    /// The manual page, in the macros of man(7).
    static var manPage: String {
        var lines = [".TH PORTCTL 1 \"\" \"swift-message-port\" \"User Commands\"", ".SH NAME"]
        lines.append("portctl \\- inspects named ports and talks to them")
        lines.append(".SH SYNOPSIS")
        for synopsis in CommandDescription.table.flatMap(\.synopses) {
            lines += [".B portctl", escaped(synopsis), ".br"]
        }
        lines += [".SH COMMANDS"]
        for description in CommandDescription.table { lines += section(of: description) }
        lines += [".SH OPTIONS", "Every command has these."]
        for option in Option.common { lines += item(option) }
        lines += [".SH \"EXIT STATUS\""]
        for (status, meaning) in statuses {
            lines += [".TP", ".B \(status.rawValue)", escaped(meaning)]
        }
        lines += [".PP", escaped(statusNote)]
        lines += [".SH ENVIRONMENT"]
        for (name, meaning) in environment { lines += [".TP", ".B \(name)", escaped(meaning)] }
        return lines.joinedLines()
    }

    private static let environment = [
        (PortDirectory.variable, "the directory of names, in place of the user's; commands get it from --directory"),
        ("XDG_RUNTIME_DIR", "where the user's directory of names is: swift-ports in it"),
        ("RUNTIME_DIRECTORY", "the same for a service: its first directory, when the former is not set"),
        ("NO_COLOR", "when it is not empty, nothing is written in colour"),
        ("COLUMNS", "how wide the terminal is taken for, in place of what it says"),
    ]

    private static func section(of description: CommandDescription) -> [String] {
        var lines = [".SS \(escaped(description.synopses.joined(separator: ", ")))"]
        lines.append(escaped(sentence(description.summary)))
        for option in description.options { lines += item(option) }
        for note in description.notes { lines += [".PP", escaped(note)] }
        return lines
    }

    private static func item(_ option: Option) -> [String] {
        let names = (option.letter.map { "\\-\($0), " } ?? "") + escaped(option.shown)
        return [".TP", ".B \(names)", escaped(summary(of: option))]
    }

    /// The text, escaped so that troff finds no request and no escape in it.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            default: escaped.append(character)
            }
        }
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }
}
