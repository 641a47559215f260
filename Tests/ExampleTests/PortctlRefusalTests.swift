// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

@testable import portctl

@Suite("portctl: what is refused before it starts", .portLeakCheck)
struct PortctlRefusalTests {
    @Test("a message that the port might drop silently is not sent, whether it is a file or comes through a pipe")
    func longMessage() async throws {
        #expect(Invocation.silentLimit == PeerLimits.standard.messageBytes - 8)
        #expect(throws: Never.self) { try Invocation.check(100, limit: 100) }
        #expect(throws: Refusal.self) { try Invocation.check(101, limit: 100) }
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let body = scratch.path("body")
            try #require(FileManager.default.createFile(atPath: body, contents: nil))
            try #require(truncate(body, Invocation.silentLimit + 1) == 0)  // it occupies no disk
            let ways = [
                ["send", "echo", "1", "--file", body],
                ["-c", "exec \"$0\" --directory \"$1\" send echo 1 - <\"$2\"", try builtProduct("portctl")]
                    + [scratch.path("names"), body],
            ]
            for way in ways {
                let result =
                    way[0] == "send"
                    ? try await portctl(way, in: scratch) : try await ChildProcess("/bin/sh", way).waitForExit()
                #expect(result.end == .exited(1) && isOneLine(result.errors))
                #expect(result.errors.hasPrefix("portctl: The message has more than \(Invocation.silentLimit) bytes; "))
                #expect(result.errors.contains("portctl request"))
            }
            let other = try await portctl(["send", "echo", "1", "short"], in: scratch)
            #expect(other == done())
            #expect(try await server.line()?.hasPrefix("message 1 ") == true)
            #expect(try await PortctlServer.stop("echo", in: scratch) == done())
            #expect(try await server.line()?.hasPrefix("message 0 ") == true)
            #expect(try await server.end() == done())
        }
    }

    @Test(
        "commands that only read make no directory: one that was mistyped is reported",
        arguments: [
            ["list"], ["list", "--names"], ["info", "x"], ["send", "x", "1"], ["request", "x", "1"], ["watch", "x"],
            ["wait", "x", "-t", "0"], ["trace", "1"],
        ])
    func directory(line: [String]) async throws {
        try await withScratchDirectory { scratch in
            let path = scratch.path("names")
            let absent = try await portctl(line, in: scratch)
            #expect(absent.end == .exited(1) && isOneLine(absent.errors) && absent.output == "")
            #expect(absent.errors.hasPrefix("portctl: There is no directory \(path); "))
            #expect(!FileManager.default.fileExists(atPath: path))
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try #require(FileManager.default.createFile(atPath: path + "/letter", contents: nil))
            let other = try await portctl(line, in: scratch)
            #expect(other.end == .exited(1) && other.errors.contains("\(path) is no directory of names; "))
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["letter"])
        }
    }

    @Test("completion makes no directory")
    func completion() async throws {
        try await withScratchDirectory { scratch in
            let line = ["completion", "zsh", "--", "--directory", scratch.path("other"), "info", ""]
            let result = try await portctl(line, in: scratch)
            #expect(result == done("words\n"))
            #expect(!FileManager.default.fileExists(atPath: scratch.path("other")))
        }
    }

    @Test("standard output that cannot be written is named", arguments: ["list --names", "help", "help --man"])
    func fullOutput(line: String) async throws {
        try await withScratchDirectory { scratch in
            let script = "exec \"$0\" \(line) >/dev/full"
            // An empty list would write nothing.
            let port = MachPort()
            try PortNameServer(directory: scratch.path("swift-ports")).register(port, name: "held")
            let process = try ChildProcess(
                "/bin/sh", ["-c", script, builtProduct("portctl")], environment: ["XDG_RUNTIME_DIR": scratch.path])
            let result = try await process.waitForExit()
            port.invalidate()
            #expect(result.end == .exited(1) && isOneLine(result.errors))
            #expect(result.errors.hasPrefix("portctl: Standard output cannot be written: No space left on device"))
        }
    }

    @Test("the name that was probably meant is suggested")
    func nearestName() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let port = MachPort()
            try names.register(port, name: "org.example.echo")
            for line in [["info"], ["send", "1"], ["request", "1"], ["watch"]] {
                let words = [line[0], "org.exampel.echo"] + line.dropFirst()
                let result = try await portctl(words, in: scratch)
                #expect(result.end == .exited(3) && isOneLine(result.errors))
                #expect(result.errors.hasSuffix(" Did you mean org.example.echo?\n"), "\(line[0])")
            }
            let far = try await portctl(["info", "other"], in: scratch)
            #expect(far.end == .exited(3) && !far.errors.contains("Did you mean"))
            port.invalidate()
        }
    }

    @Test("a command that a signal has ended is reported as that, and one byte is not plural")
    func endedBySignal() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("killed", in: scratch, ["--", "sh", "-c", "kill -9 $$"])
            let result = try await portctl(["request", "killed", "7", "x"], in: scratch)
            #expect(result.end == .exited(5) && isOneLine(result.errors))
            #expect(result.errors.contains("137") && result.errors.contains("The command was ended by signal 9."))
            #expect(try await server.line()?.hasSuffix(": 1 byte") == true)
            #expect(try await PortctlServer.stop("killed", in: scratch) == done())
            #expect(try await server.line()?.hasSuffix(": 0 bytes") == true)
            #expect(try await server.end() == done())
        }
    }
}
