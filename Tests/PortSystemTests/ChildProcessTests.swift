// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("Child processes", .census) struct ChildProcessTests {
    @Test("a process that is not a child, or no child any more, is not killed by its number")
    func notAChild() async throws {
        try await onNewThread {
            // The child of a child, which tells the signal that ended it.
            let shell = try ChildProcess("/bin/sh", ["-c", "sleep 86400 & echo $!; wait $!; echo $?"])
            let id = try #require(pid_t(shell.nextLine() ?? ""))
            sysKillAndReap(id)
            #expect(kill(id, SIGTERM) == 0)
            #expect(try shell.nextLine() == "\(128 + SIGTERM)")
            try shell.waitForExit()
        }
    }
}

@Suite("The environment of a child") struct CStringListTests {
    /// What an environment is after a change.
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

    @Test("a variable is known by the bytes of its name, whatever its value begins with")
    func combiningValue() throws {
        // U+0301 makes one Character of itself and the sign before it.
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

    @Test("what is no text, or has no sign of equality, stays as it is")
    func otherEntries() throws {
        let entries: [[UInt8]] = [[0xFF, 0x3D, 0xFE], Array("PLAIN".utf8), [0x3D], Array("A=B=C".utf8)]
        #expect(try environment(entries, changing: ["B": nil]) == entries)
        #expect(try environment(entries, changing: ["A": nil]) == Array(entries.dropLast()))
    }
}
