// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

/// Standard output and standard error, and the terminal behind them, if there is one.
enum Console {
    /// Writes to standard output at once.
    static func write(_ text: String) throws(Refusal) {
        try write(Array(text.utf8))
    }

    static func write(_ bytes: [UInt8]) throws(Refusal) {
        do throws(SystemError) {
            try sysWriteAll(STDOUT_FILENO, bytes)
        } catch {
            throw Refusal("Standard output cannot be written: \(error).")
        }
    }

    /// Writes a line to standard error.
    static func note(_ sentence: String) {
        try? sysWriteAll(STDERR_FILENO, Array("portctl: \(sentence.shown)\n".utf8))
    }

    /// Writes a sentence to standard error and ends the program.
    static func leave(_ status: ExitStatus, _ sentence: String) -> Never {
        note(sentence)
        exit(status.rawValue)
    }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// How many cells a line of the terminal has; nil when standard output is no terminal.
    static var width: Int? {
        guard isTerminal else { return nil }
        if let columns = sysEnvironment("COLUMNS").flatMap({ Int($0) }), columns > 0 { return columns }
        return sysTerminalSize(STDOUT_FILENO)?.columns ?? 80
    }

    /// How many lines the terminal has.
    static var height: Int? {
        isTerminal ? sysTerminalSize(STDOUT_FILENO)?.rows : nil
    }

    /// Whether to write in colour: on a terminal, unless NO_COLOR says otherwise (<https://no-color.org>).
    static var usesColour: Bool {
        isTerminal && (sysEnvironment("NO_COLOR") ?? "").isEmpty && sysEnvironment("TERM") != "dumb"
    }
}

/// The style of a line on a terminal.
enum Style: String {
    case plain = ""
    case title = "1"
    case silent = "2"
    case alarming = "31"
    case suspicious = "33"

    func applied(to text: String) -> String {
        self == .plain ? text : "\u{1B}[\(rawValue)m\(text)\u{1B}[0m"
    }
}
