// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import TestSupport
import Testing

/// A program on a pseudo-terminal, as a user at the terminal sees it.
final class TerminalSession {
    private let master: FileDescriptor
    private let process: pid_t
    /// What was written so far.
    private(set) var output = ""

    /// Starts the program.
    ///
    /// - Parameters:
    ///   - program: its path.
    ///   - arguments: its arguments.
    ///   - columns: how wide the terminal is.
    ///   - environment: what differs from this process's environment.
    /// - Throws: why there is no terminal, or no process.
    init(
        _ program: String, _ arguments: [String], columns: Int = 80, environment: [String: String?] = [:]
    ) throws {
        let ends = try sysOpenTerminal(columns: columns, rows: 24)
        let master = FileDescriptor(owning: ends.0)
        let slave = FileDescriptor(owning: ends.1)
        var variables = environment
        variables.updateValue(nil, forKey: "COLUMNS")
        variables["TERM"] = "xterm"
        process = try sysSpawn(
            program, arguments: arguments, environment: variables, in: nil,
            descriptors: [slave.raw, slave.raw, slave.raw])
        self.master = master
    }

    /// Reads until a text has come, or the program has closed the terminal.
    ///
    /// - Returns: whether it has come.
    @discardableResult
    func read(until text: String) throws -> Bool {
        let deadline = Watchdog.deadline
        while !output.contains(text) {
            if try .now >= deadline || sysPoll(master.raw, .readable, until: deadline).isEmpty {
                Watchdog.expired("the terminal never showed \(text.debugDescription): \(output.debugDescription)")
                return false
            }
            // The kernel says EIO when no process has the terminal open any more.
            guard let bytes = try? sysRead(master.raw, capacity: 4096), !bytes.isEmpty else { return false }
            output += String(decoding: bytes, as: UTF8.self)
        }
        return true
    }

    /// Types.
    func type(_ text: String) throws {
        try sysWriteAll(master.raw, Array(text.utf8))
    }

    /// Forgets what was written so far.
    func forget() { output = "" }

    /// Sends a signal.
    func kill(_ signal: CInt) { _ = Foundation.kill(process, signal) }

    /// Reads what is left, and waits for the program's end.
    ///
    /// - Returns: its status, as a shell reports it.
    func end() throws -> Int32 {
        try read(until: "\u{0}never")
        if let running = try sysProcessDescriptor(of: process),
            try sysPoll(running.raw, .readable, until: Watchdog.deadline).isEmpty
        {
            Watchdog.expired("process \(process) has closed its terminal and did not exit")
            kill(SIGKILL)
        }
        var status: CInt = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
}
