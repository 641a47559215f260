// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

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

    /// Writes a value, and a line end.
    static func write(_ json: JSONValue) throws(Refusal) {
        var bytes: [UInt8] = []
        json.append(to: &bytes)
        try write(bytes + [UInt8(ascii: "\n")])
    }

    /// A line, and how it looks on a terminal.
    typealias Line = (text: String, style: Style)

    static func write(_ lines: [Line]) throws(Refusal) {
        let usesColour = usesColour()
        try write(lines.map { usesColour ? $0.style.applied(to: $0.text) : $0.text }.joinedLines())
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

    /// Whether a descriptor leads to a terminal: standard output unless said otherwise.
    static func isTerminal(_ descriptor: CInt = STDOUT_FILENO) -> Bool { isatty(descriptor) == 1 }

    /// How many cells a line of the terminal has; nil when standard output is no terminal.
    static func width() -> Int? {
        guard isTerminal() else { return nil }
        if let columns = sysEnvironment("COLUMNS").flatMap({ Int($0) }), columns > 0 { return columns }
        return sysTerminalSize(STDOUT_FILENO)?.columns ?? 80
    }

    /// Whether to write in colour: on a terminal, unless NO_COLOR says otherwise (<https://no-color.org>).
    static func usesColour() -> Bool {
        isTerminal() && (sysEnvironment("NO_COLOR") ?? "").isEmpty && sysEnvironment("TERM") != "dumb"
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

/// Shows text repeatedly: in place on a terminal, one after the other elsewhere.
struct Screen {
    /// The sequence that restores the terminal.
    static let farewell: StaticString = "\u{1B}[?25h\u{1B}[?1049l"

    private let isTerminal = Console.isTerminal()

    init() {
        // The alternate screen, without a cursor; the previous one comes back at the end.
        if isTerminal { try? Console.write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J") }
    }

    func end() {
        if isTerminal { try? Console.write("\(Self.farewell)") }
    }

    func show(_ lines: [Console.Line]) throws {
        let height = isTerminal ? sysTerminalSize(STDOUT_FILENO)?.rows : nil
        try Console.write(
            Self.text(lines, height: height, usesColour: Console.usesColour(), isTerminal: isTerminal))
    }

    /// The text to write for the lines. On a terminal the last line counts those that do not fit.
    static func text(
        _ lines: [Console.Line], height: Int?, usesColour: Bool, isTerminal: Bool
    ) -> String {
        guard isTerminal else { return lines.map(\.text).joinedLines() + "\n" }
        var shown = lines
        if let height, lines.count > height, height > 1 {
            shown = Array(lines.prefix(height - 1))
            shown.append(("\(lines.count - shown.count) more", .silent))
        }
        let texts = shown.map { usesColour ? $0.style.applied(to: $0.text) : $0.text }
        return "\u{1B}[H" + texts.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
    }
}

/// Shows on a terminal how much of a long message has been sent.
struct Progress: ~Copyable {
    private let isOver = ThreadEvent()
    private let thread: SystemThread?

    /// - Parameters:
    ///   - total: how many bytes there are.
    ///   - sent: returns how many of them have been sent; called on another thread.
    init(of total: Int, sent: @escaping @Sendable () -> Int) {
        guard total >= Tuning.shortestProgress, Console.isTerminal(STDERR_FILENO) else {
            thread = nil
            return
        }
        thread = try? sysStartThread { [isOver] in
            if isOver.wait(until: .after(Tuning.progressInterval)) { return }
            repeat {
                Self.showLine(Self.line(sent(), of: total))
            } while !isOver.wait(until: .after(Tuning.progressInterval))
            Self.showLine("")
        }
    }

    /// The message has been sent, or will not be.
    consuming func end() {
        isOver.set()
        thread?.join()
    }

    static func line(_ sent: Int, of total: Int) -> String {
        let share = min(100, total == 0 ? 100 : sent * 100 / total)
        return "sent \(min(sent, total).shownAsSize) of \(total.shownAsSize), \(share) %"
    }

    private static func showLine(_ line: String) {
        try? sysWriteAll(STDERR_FILENO, Array("\r\u{1B}[K\(line)".utf8))
    }
}

/// The exit statuses of the program.
enum ExitStatus: Int32 {
    case done = 0
    case failure = 1
    case absent = 3
    case timedOut = 4
    case refused = 5
    /// `EX_USAGE` of sysexits.h.
    case usage = 64

    /// The exit status for an error of a command line that is valid.
    init(_ error: any Error) {
        self =
            switch (error as? PortError)?.code {
            case .nameUnknown, .deadName, .peerDied: .absent
            case .sendTimedOut, .replyTimedOut, .nameWaitTimedOut: .timedOut
            case .remoteError, .replyDropped, .messageDropped: .refused
            default: .failure
            }
    }
}

/// Why a command fails, where it is no error of a port.
struct Refusal: Error, CustomStringConvertible {
    let description: String

    init(_ sentence: String) {
        description = sentence
    }

    /// A check has failed: ports do not work here as promised.
    static func check(_ what: String) -> Refusal { Refusal("A check has failed: \(what).") }
}
