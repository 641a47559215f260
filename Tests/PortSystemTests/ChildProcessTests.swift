// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("Child processes", .leakCheck) struct ChildProcessTests {
    @Test("a process that is not a child, or no child any more, is not killed by its number")
    func notAChild() async throws {
        try await onNewThread {
            // The child of a child, which prints the signal that ended it.
            let shell = try ChildProcess("/bin/sh", ["-c", "sleep 86400 & echo $!; wait $!; echo $?"])
            let id = try #require(pid_t(shell.nextLine() ?? ""))
            sysKillAndReap(id)
            #expect(kill(id, SIGTERM) == 0)
            #expect(try shell.nextLine() == "\(128 + SIGTERM)")
            try shell.waitForExit()
        }
    }

    @Test(
        "a program that cannot be started gives the reason, and leaves no child",
        arguments: [
            ("/nowhere", nil, ENOENT), ("/etc/passwd", nil, EACCES), ("/bin/true", "/nowhere", ENOENT),
            ("/bin/true", "/etc/passwd", ENOTDIR),
        ] as [(String, String?, CInt)])
    func notStarted(path: String, directory: String?, code: CInt) async throws {
        try await onNewThread {
            #expect(throws: SystemError(code)) {
                _ = try sysSpawn(path, arguments: [], environment: [:], in: directory, descriptors: [nil, nil, nil])
            }
            // Of this thread's own children, not of other tests' children.
            let ofThisThread: CInt = 0x2000_0000
            var information = siginfo_t()
            let result = waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT | ofThisThread)
            #expect(result == -1 && errno == ECHILD)
        }
    }

    @Test("a child has the descriptors that were named and no others, and no signal blocked or ignored")
    func freshChild() async throws {
        try await onNewThread {
            var ends: [CInt] = [-1, -1]
            try #require(pipe(&ends) == 0)
            let reading = FileDescriptor(owning: ends[0])
            let writing = FileDescriptor(owning: ends[1])
            // One that is not close-on-exec, far above the others.
            let open = try sysOpen("/dev/null", .reading)
            let stray = FileDescriptor(owning: dup2(open.raw, 200))
            var (set, old) = (sigset_t(), sigset_t())
            sigemptyset(&set)
            sigaddset(&set, SIGUSR1)
            pthread_sigmask(SIG_BLOCK, &set, &old)
            let wasBlocked = sigismember(&old, SIGTERM)
            let before = signal(SIGUSR2, SIG_IGN)
            defer {
                signal(SIGUSR2, before)
                pthread_sigmask(SIG_SETMASK, &old, nil)
            }
            let script = "cd /proc/self/fd; echo *; grep -E '^Sig(Blk|Ign)' /proc/self/status; pwd"
            let child = try sysSpawn(
                "/bin/sh", arguments: ["-c", script], environment: [:], in: "/",
                descriptors: [open.raw, writing.raw, nil])
            var status: CInt = -1
            #expect(waitpid(child, &status, 0) == child && status == 0)
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            #expect(sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGTERM) == wasBlocked)
            var buffer = [UInt8](repeating: 0, count: 512)
            let count = read(reading.raw, &buffer, buffer.count)
            let lines = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
            // The last is the directory that the shell reads.
            #expect(lines.first == "0 1 2 3")
            #expect(lines.dropFirst().prefix(2).allSatisfy { $0.hasSuffix("\t0000000000000000") })
            withExtendedLifetime(stray) {}
        }
    }
}

@Suite("The environment of a child") struct CStringListTests {
    /// The environment after a change.
    private func environment(_ entries: [[UInt8]], changing changes: [String: String?]) throws -> [[UInt8]] {
        var copies: [UnsafeMutablePointer<CChar>?] = entries.map { entry in
            strdup(entry.map { CChar(bitPattern: $0) } + [0])
        }
        copies.append(nil)
        defer { for copy in copies { free(copy) } }
        return try copies.withUnsafeMutableBufferPointer { buffer in
            let list = try CStringList(environment: buffer.baseAddress, changing: changes)
            return list.pointers.compactMap { pointer in
                pointer.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
            }
        }
    }

    @Test("a variable is recognised by the bytes of its name, whatever its value begins with")
    func combiningValue() throws {
        // U+0301 forms one Character with the sign before it.
        let old = Array("PROBE=\u{301}old".utf8)
        #expect(try environment([old], changing: ["PROBE": "new"]) == [Array("PROBE=new".utf8)])
        #expect(try environment([old], changing: ["PROBE": nil]) == [])
        #expect(try environment([old], changing: ["PROB": nil, "PROBEN": nil]) == [old])
    }

    @Test("names that look alike and differ in their bytes are two names")
    func equivalentNames() throws {
        let composed = Array("\u{E9}=1".utf8)
        let decomposed = Array("e\u{301}=2".utf8)
        #expect(try environment([composed, decomposed], changing: ["\u{E9}": nil]) == [decomposed])
        #expect(try environment([composed, decomposed], changing: ["e\u{301}": nil]) == [composed])
    }

    @Test("an entry that is no text, or has no equals sign, stays as it is")
    func otherEntries() throws {
        let entries: [[UInt8]] = [[0xFF, 0x3D, 0xFE], Array("PLAIN".utf8), [0x3D], Array("A=B=C".utf8)]
        #expect(try environment(entries, changing: ["B": nil]) == entries)
        #expect(try environment(entries, changing: ["A": nil]) == Array(entries.dropLast()))
    }
}
