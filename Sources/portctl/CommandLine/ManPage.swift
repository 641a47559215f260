// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The manual page, in the macros of man(7).
enum ManPage {
    static var text: String {
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
        for (status, meaning) in Help.statuses {
            lines += [".TP", ".B \(status.rawValue)", escaped(meaning)]
        }
        lines += [".PP", escaped(Help.statusNote)]
        lines += [".SH ENVIRONMENT"]
        for (name, meaning) in environment { lines += [".TP", ".B \(name)", escaped(meaning)] }
        return lines.map { $0 + "\n" }.joined()
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
        lines.append(escaped(Help.sentence(description.summary)))
        for option in description.options { lines += item(option) }
        for note in description.notes { lines += [".PP", escaped(note)] }
        return lines
    }

    private static func item(_ option: Option) -> [String] {
        let names = (option.letter.map { "\\-\($0), " } ?? "") + escaped(option.shown)
        return [".TP", ".B \(names)", escaped(Help.summary(of: option))]
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
