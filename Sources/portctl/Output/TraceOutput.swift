// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

/// The file into which a trace will be written. It is tried before anything is recorded, so that an unusable path fails
/// at once. Its contents stay until there is a trace, and a file that does not exist is made only then: if one exists
/// by then, another process has made it, and it stays as it is.
struct TraceOutput {
    private let path: String
    /// The open file, or standard output; nil when the file must be made later.
    private let number: CInt?

    /// Tries the file at the path; `-` is standard output.
    init(_ path: String) throws(PortError) {
        self.path = path
        guard path != "-" else {
            number = STDOUT_FILENO
            return
        }
        do throws(SystemError) {
            // A signal may end this process before there is a trace, but not while the file is there.
            try withSignalsBlocked { () throws(SystemError) in
                let made = PortCLibrary.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
                if made < 0 { throw SystemError(errno) }
                unlink(path)
                close(made)
            }
            number = nil
        } catch {
            guard error.code == EEXIST else { throw PortError(error, subject: .path(path)) }
            number = try Self.open(path, O_WRONLY)
        }
    }

    private static func open(_ path: String, _ flags: CInt) throws(PortError) -> CInt {
        let number = PortCLibrary.open(path, flags | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(path)) }
        return number
    }

    private static func make(_ path: String) throws -> CInt {
        do throws(PortError) {
            return try open(path, O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            guard error.systemError?.code == EEXIST else { throw error }
            throw Refusal(
                "Another process made \(path) meanwhile. It was left as it is, and the trace is lost; record again.")
        }
    }

    /// Writes the trace. To be called once.
    func write(_ trace: [UInt8]) throws {
        if path == "-" { return try Console.write(Invocation.shown(trace, onTerminal: Console.isTerminal())) }
        let number = try number ?? Self.make(path)
        defer { close(number) }
        _ = ftruncate(number, 0)  // a device or a pipe has nothing to truncate
        do throws(SystemError) {
            try sysWriteAll(number, trace)
        } catch {
            throw PortError(error, subject: .path(path))
        }
        if Console.isTerminal(STDERR_FILENO) {
            Console.note(
                "\(path) has the trace, \(Human.text(byteCount: trace.count)) bytes; open it at https://ui.perfetto.dev."
            )
        }
    }
}
