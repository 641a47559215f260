// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

extension Invocation {
    func send() throws {
        let (port, message) = (try remotePort(), try message(limit: Self.silentLimit))
        try withProgress(of: message, to: port) {
            try port.send(message, sendLimit: duration("--timeout"))
        }
    }

    func request() throws {
        let (port, message) = (try remotePort(), try message(limit: nil))
        let reply = try withProgress(of: message, to: port) {
            try port.request(message, sendLimit: duration("--send-timeout"), replyLimit: duration("--timeout"))
        }
        try Console.write(
            Self.shown(reply.bytes, asHex: has("--hex"), asItIs: has("--raw"), onTerminal: Console.isTerminal()))
        let others = reply.components.count { if case .bytes = $0 { false } else { true } }
        if others > 0 { Console.note("The reply also has \(others) rights or descriptors, which are not shown.") }
    }

    /// The text to write for a reply.
    static func shown(_ bytes: [UInt8], asHex: Bool = false, asItIs: Bool = false, onTerminal: Bool) -> [UInt8] {
        if asHex { return Array(bytes.hexDump.utf8) }
        if asItIs || !onTerminal { return bytes }
        guard let text = bytes.readableText else { return Array(bytes.hexDump.utf8) }
        return bytes + (text.isEmpty || bytes.last == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")])
    }

    private func withProgress<Result>(
        of message: MachMessage, to port: RemoteMessagePort, _ body: () throws -> Result
    ) throws -> Result {
        let right = port.right
        let before = right.sentByteCount
        let progress = Progress(of: message.bytes.count) { right.sentByteCount - before }
        let result = Swift.Result { try body() }
        progress.end()
        return try result.get()
    }

    /// The message, with at most `limit` bytes; nil where sending reports one that is too long.
    private func message(limit: Int?) throws -> MachMessage {
        if let file = options["--file"] {
            let number = open(file, O_RDONLY | O_CLOEXEC)
            guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(file)) }
            defer { close(number) }
            return MachMessage(id: id, bytes: try Self.readAll(number, of: file, limit: limit))
        }
        guard arguments["DATA"] != "-" else {
            return MachMessage(id: id, bytes: try Self.readAll(STDIN_FILENO, of: "standard input", limit: limit))
        }
        return MachMessage(id: id, text: arguments["DATA"] ?? "")
    }

    /// Reads all bytes, or more than any message may have: then sending reports that.
    private static func readAll(_ descriptor: CInt, of path: String, limit: Int?) throws -> [UInt8] {
        // The remaining length of a regular file shows it without reading.
        var status = stat()
        if let limit, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            try check(Int(status.st_size) - max(0, Int(lseek(descriptor, 0, SEEK_CUR))), limit: limit)
        }
        var bytes: [UInt8] = []
        do throws(SystemError) {
            while bytes.count <= limit ?? MessageLimits.payload,
                let piece = try sysRead(descriptor, capacity: Tuning.pieceSize), !piece.isEmpty
            { bytes += piece }
        } catch {
            throw PortError(error, subject: .path(path))
        }
        if let limit { try check(bytes.count, limit: limit) }
        return bytes
    }

    /// Refuses a message that a port may discard silently.
    static func check(_ count: Int, limit: Int) throws(Refusal) {
        guard count > limit else { return }
        throw Refusal(
            "The message has more than \(limit) bytes; a port drops it without a word, unless its owner allows more. Use "
                + "portctl request, which reports whether it was received.")
    }
}
