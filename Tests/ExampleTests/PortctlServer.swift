// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// A running `portctl serve`. Its output goes through a FIFO, so that a test can wait for a line.
final class PortctlServer: Sendable {
    let process: ChildProcess
    private let output: FileHandle

    /// Starts it, and waits until it serves.
    ///
    /// - Parameters:
    ///   - name: what it serves.
    ///   - scratch: where the directory of names is.
    ///   - more: other arguments.
    ///   - descriptors: how many descriptors it may have; nil for as many as this process.
    /// - Throws: when it cannot be started, or does not serve.
    convenience init(
        _ name: String, in scratch: ScratchDirectory, _ more: [String] = [], descriptors: Int? = nil
    ) async throws {
        try await self.init(starting: name, in: scratch, more, descriptors: descriptors)
        try #require(try await line() == "process \(process.processID) serves \(name)")
    }

    /// Starts it with so few descriptors that it may end at once.
    ///
    /// - Returns: nil when it has ended.
    static func start(_ name: String, in scratch: ScratchDirectory, descriptors: Int) async throws -> PortctlServer? {
        let server = try await PortctlServer(starting: name, in: scratch, [], descriptors: descriptors)
        if try await server.line() != nil { return server }
        let end = try await server.end()
        // Of the loader, where not even the libraries can be opened: descriptors of other tests are open in it, too.
        let isShort = end.errors.contains("No file descriptor is left") || end.errors.contains("shared libraries")
        #expect(end.end != .exited(0) && isShort, "\(end)")
        return nil
    }

    private init(
        starting name: String, in scratch: ScratchDirectory, _ more: [String], descriptors: Int?
    ) async throws {
        let path = scratch.path("output-\(UUID().uuidString)")
        try #require(mkfifo(path, 0o600) == 0)
        // The shell has opened the FIFO before the limit holds.
        let limit = descriptors.map { "/usr/bin/prlimit --nofile=\($0): " } ?? ""
        process = try ChildProcess(
            "/bin/sh",
            ["-c", "exec \(limit)\"$0\" \"$@\" >\"$OUTPUT\"", builtProduct("portctl"), "serve", name]
                + ["--directory", scratch.path("names")] + more, environment: ["OUTPUT": path])
        output = try await offThePool { try FileHandle(forReadingFrom: URL(fileURLWithPath: path)) }
    }

    /// The next line, when it is there. Nil at the end.
    func line() async throws -> String? {
        try await offThePool { [output] in
            var bytes = Data()
            while let byte = try output.read(upToCount: 1), let first = byte.first {
                if first == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
                bytes.append(byte)
            }
            return nil
        }
    }

    /// Ends the server of a name.
    static func stop(_ name: String, in scratch: ScratchDirectory) async throws -> ProcessResult {
        try await portctl(["send", name, "0"], in: scratch)
    }

    /// Waits for its end.
    func end() async throws -> ProcessResult {
        let result = try await process.waitForExit()
        try output.close()
        return result
    }
}

/// Makes that directory, as the first port in it would: commands that only read do not.
func makeNames(in scratch: ScratchDirectory) throws {
    _ = try PortNameServer(directory: scratch.path("names"))
}

/// Runs portctl with the names of a directory of the scratch directory.
func portctl(_ arguments: [String], in scratch: ScratchDirectory) async throws -> ProcessResult {
    let process = try ChildProcess(builtProduct("portctl"), ["--directory", scratch.path("names")] + arguments)
    return try await process.waitForExit()
}

/// Asks what there is to know about a name, as JSON, until that is as expected.
func portctlInfo(
    _ name: String, in scratch: ScratchDirectory, until isExpected: (String) -> Bool
) async throws -> String {
    let deadline = Watchdog.deadline
    while true {
        let information = try await portctl(["info", name, "--json", "--timeout", "1h"], in: scratch).output
        if isExpected(information) || .now >= deadline { return information }
    }
}

/// The result of a program that has done what it was asked for.
func done(_ output: String = "") -> ProcessResult {
    ProcessResult(end: .exited(0), output: output)
}

/// Whether there is one line, with its end.
func isOneLine(_ text: String) -> Bool {
    text.hasSuffix("\n") && text.filter { $0 == "\n" }.count == 1
}
