// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    /// Follows a port's messages until its owner ends, or a signal comes.
    func watch() throws {
        Interrupt.endsProgram()
        var watch = try nameServer().watchMessages(
            of: name, byteLimit: size("--bytes"), until: .after(duration("--timeout")))
        if !has("--json"), Console.isTerminal() { Console.note("Watching \(name.shown); Ctrl-C ends.") }
        var left = count("--count") ?? .max
        while left > 0, let event = try watch.next(until: .distantFuture) {
            guard case .message(let message, let leftOut) = event else {
                return Console.note("The port has ended, or its owner shows no more.")
            }
            if has("--json") {
                try Console.write(Self.json(message, leftOut))
            } else {
                try Console.write(Self.lines(message, leftOut).joinedLines())
            }
            left -= 1
        }
    }

    /// The lines to write for a message.
    static func lines(_ message: TappedMessage, _ leftOut: UInt64) -> [String] {
        var line = Self.line(
            message.id, expectsReply: message.expectsReply, from: message.sender, byteCount: message.byteCount)
        if message.componentCount > 1 { line += ", \(message.componentCount) components" }
        if !message.bytes.isEmpty { line += "  \(shownBytes(message))" }
        return (leftOut > 0 ? ["\(leftOut) left out"] : []) + [line]
    }

    /// The beginning of the bytes: as text when it is text, in hexadecimal otherwise.
    private static func shownBytes(_ message: TappedMessage) -> String {
        let isWhole = message.bytes.count >= message.byteCount
        // The last character may be incomplete.
        let whole = isWhole ? message.bytes[...] : message.bytes[..<lastWholeCharacter(of: message.bytes)]
        let text = whole.readableText.map { "\"\($0.shown)\"" } ?? message.bytes.hexDigits(separator: " ")
        return isWhole ? text : text + " ..."
    }

    private static func lastWholeCharacter(of bytes: [UInt8]) -> Int {
        let start = bytes.lastIndex { $0 & 0xC0 != 0x80 } ?? 0
        return String(validating: bytes[start...], as: UTF8.self) == nil ? start : bytes.count
    }

    private static func json(_ message: TappedMessage, _ leftOut: UInt64) -> JSONValue {
        .object([
            ("id", .number(message.id)), ("expectsReply", .flag(message.expectsReply)),
            ("sender", .number(message.sender)), ("bytes", .number(message.byteCount)),
            ("components", .number(message.componentCount)), ("leftOut", .number(leftOut)),
            ("beginning", .text(message.bytes.hexDigits())),
        ])
    }
}
