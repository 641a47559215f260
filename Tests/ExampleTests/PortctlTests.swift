// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("portctl", .portLeakCheck)
struct PortctlTests {
    @Test("a served name is listed, answers requests, accepts messages, and ends at message 0")
    func serving() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("org.example.echo", in: scratch)
            let list = try await portctl(["list", "--names"], in: scratch)
            #expect(list == done("org.example.echo\n"))

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

    /// Sends lines from standard input in the request that ends an echo server.
    private func expectEcho(ofLines count: Int) async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let text = String(repeating: "many lines\n", count: count)
            let client = try ChildProcess(
                builtProduct("portctl"), ["request", "--directory", scratch.path("names"), "echo", "0", "-"])
            try client.write(text)
            #expect(try await client.waitForExit() == done(text))
            #expect(try await server.end() == done())
        }
    }

    @Test("standard input is sent as it is")
    func standardInput() async throws {
        try await expectEcho(ofLines: 20_000)
    }

    @Test("the last reply arrives whole, however large: a server ends when all of it is flushed")
    func lastReply() async throws {
        try await expectEcho(ofLines: 800_000)
    }

    @Test("a name that is in use is reported with its owner, and is free when that is killed")
    func takenName() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let first = try await PortctlServer("only.one", in: scratch)
            let second = try await portctl(["serve", "only.one"], in: scratch)
            #expect(second.end == .exited(1))
            #expect(second.output == "")
            #expect(isOneLine(second.errors))
            #expect(second.errors.contains("owner: process \(first.process.processID))"))
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
            let result = try await portctl(["request", "silent", "1", "--timeout", "0"], in: scratch)
            #expect(result.end == .exited(4))
            #expect(result.errors.hasPrefix("portctl: No reply came within the receive limit"))
            #expect(isOneLine(result.errors))
            silent.invalidate()
        }
    }

    @Test("the list shows owners and what their ports have counted, and which owners are busy or not there yet")
    func list() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            #expect(try await portctl(["request", "echo", "1", "hello"], in: scratch) == done("hello"))
            // A server does not notice at a fixed time that the client has gone.
            _ = try await portctlInfo("echo", in: scratch) { $0.contains(#""peers":0,"#) }
            let names = try PortNameServer(directory: scratch.path("names"))
            // In no loop, and no other thread asks a policy of the program's: it never answers.
            let port = MachPort()
            port.setPeerPolicy(PeerPolicy { _ in true })
            try names.register(port, name: "a\u{1B}[2J\nb")
            let held = try DeclaredName("on.demand", in: names)
            let list = try await portctl(["list", "--timeout", "2s"], in: scratch)
            let lines = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            try #require(lines.count == 4 && list.end == .exited(0))
            #expect(lines[0] == ["NAME", "OWNER", "COMMAND", "PEERS", "QUEUE", "MESSAGES", "BYTES", "DROPS"])
            #expect(lines[1].prefix(2) == ["a\\u{1B}[2J\\nb", "\(PeerIdentity.current.processID)"])
            #expect(lines[1].suffix(5) == ["-", "busy", "-", "-", "-"])
            #expect(lines[2].prefix(5) == ["echo", "\(server.process.processID)", "portctl", "serve", "echo"])
            #expect(lines[2].suffix(5) == ["0", "0/64", "1", "5", "0"])
            #expect(lines[3].prefix(2) == ["on.demand", "\(PeerIdentity.current.processID)"])
            #expect(lines[3].suffix(5) == ["-", "waiting", "-", "-", "-"])
            let info = try await portctl(["info", "on.demand", "--timeout", "1ms"], in: scratch)
            #expect(
                info.end == .exited(0) && info.output.contains("Held by  process \(PeerIdentity.current.processID)\n"))
            #expect(try await portctl(["list", "--names"], in: scratch).output.hasSuffix("\necho\non.demand\n"))
            held.end()
            #expect(try await portctl(["info", "on.demand"], in: scratch).end == .exited(3))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
            port.invalidate()
        }
    }

    @Test("info and JSON show the same")
    func info() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let info = try await portctl(["info", "echo", "--timeout", "10s"], in: scratch)
            #expect(info.end == .exited(0))
            for fact in [
                "Name      echo", "Owner     process \(server.process.processID)", "Queue     0 of 64", "Drops     0",
            ] {
                #expect(info.output.contains(fact))
            }
            var (list, object) = (done(), done())
            let deadline = Watchdog.deadline
            // Each finds out by itself since when, to the second. Each query changes how often the owner has slept.
            let waits = /"sleeps":\d+,"spinsThatPaid":\d+,"spinsThatDidNot":\d+/
            repeat {
                list = try await portctl(["list", "--json", "--timeout", "10s"], in: scratch)
                object = try await portctl(["info", "echo", "--json", "--timeout", "10s"], in: scratch)
                list.output.replace(waits, with: "waits")
                object.output.replace(waits, with: "waits")
            } while list.output != "[\(object.output.dropLast())]\n" && .now < deadline
            let statistics =
                #""statistics":{"peers":0,"queued":0,"queueLimit":64,"queueHighWaterMark":0,"messages":0,"bytes":0,"dropped":0,waits}"#
            #expect(list.output == "[\(object.output.dropLast())]\n")
            #expect(
                object.output.hasPrefix(
                    #"{"name":"echo","owner":\#(server.process.processID),"command":"portctl serve"#))
            #expect(object.output.contains(#""state":"running","statistics":"#))
            #expect(object.output.contains(statistics))
            #expect(try await portctl(["info", "other"], in: scratch).end == .exited(3))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("list --watch prints again and again, and ends after --count times")
    func watchedList() async throws {
        try await withScratchDirectory { scratch in
            try makeNames(in: scratch)
            let once = try await portctl(["list", "--watch", "--json", "--count", "3", "--interval", "0"], in: scratch)
            #expect(once == done("[]\n[]\n[]\n"))
            let names = try await portctl(["list", "-wjn2", "--names", "-i0"], in: scratch)
            #expect(names == done("[]\n[]\n"))
        }
    }

    /// The one line on standard error of a command that fails.
    private func failureLine(
        of arguments: [String], _ status: Int32, in scratch: ScratchDirectory
    ) async throws -> String {
        let result = try await run("portctl", arguments, namesIn: scratch)
        #expect(result.end == .exited(status))
        #expect(result.output == "")
        #expect(result.errors.hasPrefix("portctl: "))
        #expect(isOneLine(result.errors))
        return result.errors
    }

    @Test(
        "what cannot be done is one line on standard error and a status for the kind of failure",
        arguments: [
            (["send", "nobody", "1"], "No live port has the name", 3),
            (["request", "nobody", "1"], "No live port has the name", 3),
            (["serve", ""], "A name must not be empty. Try: portctl help serve", 64),
            (["serve", String(repeating: "x", count: 129)], "A name has at most 128 bytes; this one has 129.", 64),
            (["request", "nobody", "1", "--file", "/tmp"], "No live port has the name", 3),
            (["watch", "nobody"], #"("nobody"); "#, 3),
            (["trace", "2147483647"], "There is no process 2147483647.", 3),
            (["list", "--directory", "/proc"], "The directory must belong to this user and be closed to others", 1),
            (["list", "--directory", "here"], "--directory: here is no absolute path; ", 64),
            (["list", "--directory", "/two\nlines/here"], "There is no directory /two\\nlines/here; ", 1),
            (["serve", "x", "--", "/nonexist"], "The command /nonexist cannot be run: No such file or directory", 1),
            (["activate", "x", "--", "no-such-program"], "The command no-such-program cannot be run: No such", 1),
            (["activate", "x", "--", "/etc/passwd"], "The command /etc/passwd cannot be run: Permission denied", 1),
            (["trace", "--", "/tmp"], "The command /tmp cannot be run: Permission denied", 1),
            (["trace", "-o", "/nonexist/t", "--", "true"], "/nonexist/t", 1),
        ])
    func failures(arguments: [String], sentence: String, status: Int32) async throws {
        try await withScratchDirectory { scratch in
            let line = try await failureLine(of: arguments, status, in: scratch)
            #expect(line.contains(sentence))
        }
    }

    @Test(
        "a wrong command line is one line on standard error and status 64",
        arguments: [
            [], ["dance"], ["list", "x"], ["send", "x"], ["send", "x", "1", "y", "z"], ["serve"], ["help", "x"],
            ["send", "x", "one"], ["send", "x", "2147483648"], ["list", "--directory"], ["list", "--colour"],
            ["request", "x", "1", "--send-timeout", "soon"], ["request", "x", "1", "--timeout", "-1"],
            ["request", "x", "1", "--timeout", "nan"], ["activate", "x"], ["send", "x", "1", "y", "--file", "z"],
            ["two\nlines"], ["send", "x", "1\n"], ["--two\nlines"], ["wait", "x", "--timeout="],
            ["wait", "x", "-t", ""],
            ["list", "--count", "3"], ["list", "-n3"], ["list", "--interval", "1s"], ["list", "--names", "-t1s"],
            ["trace", "-d", "1s", "--", "true"], ["request", "x", "1", "-xr"], ["list", "-wq"], ["list", "-w=3"],
            ["version"], ["info", ""],
        ])
    func usage(arguments: [String]) async throws {
        try await withScratchDirectory { scratch in
            let line = try await failureLine(of: arguments, 64, in: scratch)
            #expect(line.contains(" Try: portctl help"))
        }
    }

    @Test("help is printed", arguments: [["help"], ["--help"], ["-h"], ["send", "--help"]])
    func help(arguments: [String]) async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("portctl", arguments, namesIn: scratch)
            #expect(result.end == .exited(0) && result.errors == "")
            let words =
                arguments[0] == "send"
                ? ["usage: portctl send", "--timeout", "--directory"] : ["list", "serve", "--directory"]
            for word in words { #expect(result.output.contains(word)) }
        }
    }
}
