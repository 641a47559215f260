// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import TestSupport
import Testing

@Suite("portctl", .portCensus)
struct PortctlTests {
    @Test("a served name is listed, answers requests, takes messages, and ends at message 0")
    func serving() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("org.example.echo", in: scratch)
            let list = try await portctl(["list"], in: scratch)
            #expect(list == done("org.example.echo  \(server.process.processID)\n"))

            let request = try await portctl(["request", "org.example.echo", "7", "Grüße"], in: scratch)
            #expect(request == done("Grüße"))
            let line = try await server.line()
            #expect(line?.wholeMatch(of: /request 7 from process [0-9]+: 7 bytes/) != nil)
            #expect(line?.contains("process \(server.process.processID):") == false)

            #expect(try await portctl(["send", "org.example.echo", "-8"], in: scratch) == done())
            #expect(try await server.line()?.wholeMatch(of: /message -8 from process [0-9]+: 0 bytes/) != nil)

            #expect(try await portctl(["request", "org.example.echo", "0", "bye"], in: scratch) == done("bye"))
            #expect(try await server.line()?.hasPrefix("request 0 from process ") == true)
            #expect(try await server.line() == nil)
            #expect(try await server.end() == done())
            #expect(try await portctl(["list"], in: scratch) == done())
        }
    }

    @Test("standard input is sent as it is")
    func standardInput() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let text = String(repeating: "many lines\n", count: 20_000)
            let client = try ChildProcess(
                builtProduct("portctl"), ["request", "--directory", scratch.path("names"), "echo", "0", "-"])
            try client.write(text)
            #expect(try await client.waitForExit() == done(text))
            #expect(try await server.end() == done())
        }
    }

    @Test("a name that is taken is told with its owner, and is free when that is killed")
    func takenName() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let first = try await PortctlServer("only.one", in: scratch)
            let second = try await portctl(["serve", "only.one"], in: scratch)
            #expect(second.end == .exited(1))
            #expect(second.output == "")
            #expect(isOneLine(second.errors))
            #expect(second.errors.contains("Owner: process \(first.process.processID)."))
            first.process.kill()
            #expect(try await first.end().end == .signalled(9))
            #expect(try await portctl(["list"], in: scratch) == done())
            let third = try await PortctlServer("only.one", in: scratch)
            #expect(try await portctl(["send", "only.one", "0"], in: scratch) == done())
            #expect(try await third.end() == done())
        }
    }

    @Test("a port that does not answer costs no more than the reply limit")
    func replyLimit() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let silent = try LocalMessagePort(
                name: "silent", nameServer: names
            ) { _, _ in nil }
            let result = try await portctl(["request", "silent", "1", "--reply-limit", "0"], in: scratch)
            #expect(result.end == .exited(1))
            #expect(result.errors.hasPrefix("portctl: No reply came within the receive limit"))
            #expect(isOneLine(result.errors))
            silent.invalidate()
        }
    }

    @Test("the list is aligned, sorted, and shows no control characters")
    func list() async throws {
        try await withScratchDirectory { scratch in
            let server = try PortNameServer(directory: scratch.path("names"))
            let port = MachPort()
            for name in ["longer.name", "b", "a\u{1B}[2J\nb"] { try server.register(port, name: name) }
            let owner = PeerIdentity.current.processID
            let rows = ["a\\u{1B}[2J\\nb", "b            ", "longer.name  "].map { "\($0)  \(owner)\n" }
            #expect(try await portctl(["list"], in: scratch) == done(rows.joined()))
            port.invalidate()
        }
    }

    @Test(
        "what cannot be done is one line on standard error and status 1",
        arguments: [
            (["send", "nobody", "1"], "No live port has the name"),
            (["request", "nobody", "1"], "No live port has the name"),
            (["serve", ""], "A port name must not be empty"),
            (["serve", String(repeating: "x", count: 129)], "A port name has at most 128 bytes"),
            (["list", "--directory", "/proc"], "The directory must belong to this user and be closed to others"),
            (["list", "--directory", "here"], "It is not an absolute path"),
            (["list", "--directory", "/two\nlines/here"], "Path: /two\\nlines/here."),
        ])
    func failures(arguments: [String], sentence: String) async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("portctl", arguments, namesIn: scratch)
            #expect(result.end == .exited(1))
            #expect(result.output == "")
            #expect(result.errors.hasPrefix("portctl: "))
            #expect(result.errors.contains(sentence))
            #expect(isOneLine(result.errors))
        }
    }

    @Test(
        "a wrong command line is one line on standard error and status 2",
        arguments: [
            [], ["dance"], ["list", "x"], ["send", "x"], ["send", "x", "1", "y", "z"], ["serve"], ["help", "x"],
            ["send", "x", "one"], ["send", "x", "2147483648"], ["list", "--directory"], ["list", "--colour"],
            ["request", "x", "1", "--send-limit", "soon"], ["request", "x", "1", "--reply-limit", "-1"],
            ["request", "x", "1", "--reply-limit", "nan"], ["two\nlines"], ["send", "x", "1\n"], ["--two\nlines"],
        ])
    func usage(arguments: [String]) async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("portctl", arguments, namesIn: scratch)
            #expect(result.end == .exited(2))
            #expect(result.output == "")
            #expect(result.errors.hasPrefix("portctl: ") && result.errors.hasSuffix(" Try: portctl help\n"))
            #expect(isOneLine(result.errors))
        }
    }

    @Test("help is printed", arguments: [["help"], ["--help"], ["-h"], ["send", "--help"]])
    func help(arguments: [String]) async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("portctl", arguments, namesIn: scratch)
            #expect(result.end == .exited(0) && result.errors == "")
            for word in ["list", "send", "request", "serve", "--directory", "--send-limit", "--reply-limit"] {
                #expect(result.output.contains(word))
            }
        }
    }
}

private func done(_ output: String = "") -> ProcessResult {
    ProcessResult(end: .exited(0), output: output)
}

private func isOneLine(_ text: String) -> Bool {
    text.hasSuffix("\n") && text.filter { $0 == "\n" }.count == 1
}
