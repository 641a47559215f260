// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// Shows text repeatedly: in place on a terminal, one after the other elsewhere.
struct Screen {
    /// The sequence that restores the terminal.
    static let farewell: StaticString = "\u{1B}[?25h\u{1B}[?1049l"

    private let isTerminal = Console.isTerminal

    init() {
        // The alternate screen, without a cursor; the previous one comes back at the end.
        if isTerminal { try? Console.write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J") }
    }

    func end() {
        if isTerminal { try? Console.write("\(Self.farewell)") }
    }

    func show(_ lines: [(text: String, style: Style)]) throws {
        try Console.write(
            Self.text(lines, height: Console.height, usesColour: Console.usesColour, isTerminal: isTerminal))
    }

    /// The text to write for the lines. On a terminal the last line counts those that do not fit.
    static func text(
        _ lines: [(text: String, style: Style)], height: Int?, usesColour: Bool, isTerminal: Bool
    ) -> String {
        guard isTerminal else { return lines.map { $0.text + "\n" }.joined() + "\n" }
        var shown = lines
        if let height, lines.count > height, height > 1 {
            shown = Array(lines.prefix(height - 1))
            shown.append(("\(lines.count - shown.count) more", .silent))
        }
        let texts = shown.map { usesColour ? $0.style.applied(to: $0.text) : $0.text }
        return "\u{1B}[H" + texts.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
    }
}
