// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The texts of `portctl help`.
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
        return lines.map { $0 + "\n" }.joined()
    }

    /// The help of one command.
    static func text(of description: CommandDescription, width: Int = 100) -> String {
        var lines = description.synopses.enumerated().map { ($0 == 0 ? "usage: " : "       ") + "portctl \($1)" }
        lines += [""] + wrapped(sentence(description.summary), width: width)
        lines += ["", "Options:"] + options(description.allOptions, width: width)
        for note in description.notes { lines += [""] + wrapped(note, width: width) }
        return lines.map { $0 + "\n" }.joined()
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
