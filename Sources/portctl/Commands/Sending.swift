// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

extension Invocation {
    func send() throws {
        let (port, message) = (try remotePort(), try message())
        try withProgress(of: message, to: port) {
            try port.send(message, sendLimit: duration("--timeout"))
        }
    }

    func request() throws {
        let (port, message) = (try remotePort(), try message())
        let reply = try withProgress(of: message, to: port) {
            try port.request(message, sendLimit: duration("--send-timeout"), replyLimit: duration("--timeout"))
        }
        try Console.write(
            Self.shown(reply.bytes, asHex: has("--hex"), asItIs: has("--raw"), onTerminal: Console.isTerminal))
        let others = reply.components.count { if case .bytes = $0 { false } else { true } }
        if others > 0 { Console.note("The reply also has \(others) rights or descriptors, which are not shown.") }
    }

    /// What is written of a reply.
    static func shown(_ bytes: [UInt8], asHex: Bool, asItIs: Bool, onTerminal: Bool) -> [UInt8] {
        if asHex { return Array(Bytes.hex(bytes).utf8) }
        if asItIs || !onTerminal { return bytes }
        guard let text = Bytes.text(bytes) else { return Array(Bytes.hex(bytes).utf8) }
        return bytes + (text.isEmpty || text.hasSuffix("\n") ? [] : [UInt8(ascii: "\n")])
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

    private func message() throws -> MachMessage {
        if let file = options["--file"] {
            let number = open(file, O_RDONLY | O_CLOEXEC)
            guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(file)) }
            defer { close(number) }
            return MachMessage(id: id, bytes: try Self.readAll(number, of: file))
        }
        guard arguments["DATA"] != "-" else {
            return MachMessage(id: id, bytes: try Self.readAll(STDIN_FILENO, of: "standard input"))
        }
        return MachMessage(id: id, text: arguments["DATA"] ?? "")
    }

    /// Reads all, or more than a message may have: then sending it says so.
    private static func readAll(_ descriptor: CInt, of path: String) throws(PortError) -> [UInt8] {
        do throws(SystemError) {
            var bytes: [UInt8] = []
            while bytes.count <= MessageLimits.payload, let piece = try sysRead(descriptor, capacity: 1 << 16),
                !piece.isEmpty
            { bytes += piece }
            return bytes
        } catch {
            throw PortError(error, subject: .path(path))
        }
    }
}
