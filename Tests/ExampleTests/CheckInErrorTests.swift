// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

@Suite("CheckIn: errors", .leakCheck)
struct CheckInErrorTests {
    @Test("a file that is not there is reported in one line")
    func missing() async throws {
        try await expectFailure(["README.md", "nowhere.txt"], "checkin: nowhere.txt: No such file or directory\n")
    }

    @Test("a directory is reported in one line")
    func directory() async throws {
        try await expectFailure(["Sources"], "checkin: Sources: Is a directory\n")
    }

    @Test("an unreadable file is reported in one line", .enabled(if: geteuid() != 0, "root may read every file"))
    func unreadable() async throws {
        try await withScratchDirectory { scratch in
            let path = try scratch.write("secret", to: "secret.txt")
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: path)
            try await expectFailure([path], "checkin: \(path): Permission denied\n")
        }
    }

    @Test("a file whose reading fails is reported in one line")
    func failingRead() async throws {
        try await expectFailure(["/proc/self/mem"], "checkin: /proc/self/mem: Input/output error\n")
    }

    @Test("an empty name is reported in one line")
    func emptyName() async throws {
        try await expectFailure(["README.md", ""], "checkin: : No such file or directory\n")
    }

    @Test("a name of several lines is reported in one line")
    func nameOfTwoLines() async throws {
        try await expectFailure(["two\nlines"], "checkin: two\\nlines: No such file or directory\n")
    }

    @Test("standard output that is full is reported in one line")
    func fullOutput() async throws {
        try await withScratchDirectory { scratch in
            let result = try await ChildProcess(
                "/bin/sh", ["-c", "exec \"$0\" README.md >/dev/full", builtProduct("checkin")],
                environment: ["XDG_RUNTIME_DIR": scratch.path], in: Document.packageDirectory
            ).waitForExit()
            let errors = "checkin: standard output: No space left on device\n"
            #expect(result == ProcessResult(end: .exited(1), output: "", errors: errors))
        }
    }

    @Test("a worker that dies is reported in one line, and leaves neither a name nor a process")
    func deadWorker() async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("checkin", ["--worker-dies", "README.md"], namesIn: scratch)
            #expect(result.end == .exited(1))
            let line = try #require(
                try /checkin: the worker \(process ([0-9]+)\) died of signal 9\n/.wholeMatch(in: result.errors))
            let worker = try #require(pid_t(line.1))
            #expect(kill(worker, 0) == -1 && errno == ESRCH)
            #expect(try heldNames(in: scratch) == [])
            #expect(acts(of: result.output).prefix(2).allSatisfy { !table(of: $0).isEmpty })
        }
    }

    @Test("what a dead worker leaves on disk is gone after the next program has run")
    func sweptSockets() async throws {
        try await withScratchDirectory { scratch in
            _ = try await run("checkin", ["--worker-dies", "README.md"], namesIn: scratch)
            _ = try await run("checkin", ["README.md"], namesIn: scratch)
            #expect(try portFiles(in: scratch).filter { $0.hasPrefix("sockets/") } == [])
        }
    }

    private func expectFailure(_ arguments: [String], _ errors: String) async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("checkin", arguments, namesIn: scratch)
            #expect(result == ProcessResult(end: .exited(1), output: "", errors: errors))
            #expect(try heldNames(in: scratch) == [])
        }
    }
}
