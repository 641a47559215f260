// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

/// The file into which a trace will be written. It is opened before anything is recorded, so that a path that does not do fails
/// at once; what is in it stays until there is a trace.
final class TraceOutput {
    private let path: String
    /// Standard output's, when it has no path.
    private let number: CInt
    /// Whether it was not there before.
    private let isNew: Bool
    private var isWritten = false

    /// Opens the file at the path; `-` is standard output.
    init(_ path: String) throws(PortError) {
        self.path = path
        guard path != "-" else {
            (number, isNew) = (STDOUT_FILENO, false)
            return
        }
        let made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        isNew = made >= 0
        number = made < 0 && errno == EEXIST ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) : made
        guard number >= 0 else { throw PortError(SystemError(errno), subject: .path(path)) }
    }

    func write(_ trace: [UInt8]) throws {
        if path == "-" { return try Console.write(trace) }
        _ = ftruncate(number, 0)  // a device or a pipe has nothing to cut
        do throws(SystemError) {
            try sysWriteAll(number, trace)
        } catch {
            throw PortError(error, subject: .path(path))
        }
        isWritten = true
        if isatty(STDERR_FILENO) == 1 {
            Console.note(
                "\(path) has the trace, \(HumanSize.text(trace.count)) bytes; open it at https://ui.perfetto.dev.")
        }
    }

    /// Closes it. One that was made for nothing goes.
    func end() {
        guard path != "-" else { return }
        close(number)
        if isNew, !isWritten { unlink(path) }
    }
}
