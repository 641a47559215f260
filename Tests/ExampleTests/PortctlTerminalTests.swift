// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

@testable import portctl

/// portctl as it is seen in a terminal, and by shells.
@Suite("portctl: in a terminal", .portLeakCheck)
struct PortctlTerminalTests {
    @Test("list --watch updates the list in place, with names that come and go, and leaves the terminal as it was")
    func watchedList() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("first.name", in: scratch)
            let program = try builtProduct("portctl")
            let directory = scratch.path("names")
            try await offThePool {
                let session = try TerminalSession(
                    program, ["list", "--watch", "--interval", "10ms", "--timeout", "1h", "--directory", directory],
                    environment: ["NO_COLOR": nil])
                try session.read(until: "first.name")
                #expect(session.output.hasPrefix("\u{1B}[?1049h"))
                #expect(session.output.contains("\u{1B}[1mNAME"))
                let second = try ChildProcess(program, ["serve", "second.name", "--directory", directory])
                try session.read(until: "second.name")
                // The next picture is drawn over the last.
                session.forget()
                try session.read(until: "\u{1B}[H")
                try session.read(until: "second.name")
                session.kill(SIGINT)
                #expect(try session.end() == 0)
                #expect(session.output.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
                second.kill()
                #expect(try second.waitForExit().end == .signalled(9))
            }
            #expect(try await PortctlServer.stop("first.name", in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    /// One of the owners is stopped.
    @Test(
        "list --watch shows in tmux what the page shows, also when the terminal becomes narrow, and Ctrl-C ends it",
        .enabled(if: TmuxSession.isThere(.bash), "bash or tmux is not installed"))
    func watchedInTmux() async throws {
        let page = try Document("Docs/portctl.md")
        let (wide, narrow) = (
            try #require(page.blocks("screen wide").first), try #require(page.blocks("screen narrow").first)
        )
        try await TmuxSession.with(.bash, columns: 72) { session, _ in
            let names = ["busy", "echo", "upper"].map { "org.example.\($0)" }
            for (number, name) in names.enumerated() {
                try session.type(
                    "portctl serve \(name) >/dev/null 2>&1 & portctl wait \(name); clear; echo \(number)\r")
                try session.wait { $0 == ["\(number)", ">"] }
            }
            for name in names.dropFirst() { try session.type("portctl request \(name) 1 hi; ") }
            try session.type("kill -STOP %1; clear; portctl list --watch\r")
            try session.wait { Self.withoutNumbers($0) == Self.withoutNumbers(wide.lines) }
            try session.ask("refresh-client -C 40x24")
            try session.wait { Self.withoutNumbers($0) == Self.withoutNumbers(narrow.lines) }
            try session.type("\u{03}")
            try session.wait { $0.last == ">" }
            // The shell waits for no job that is stopped, as far as it knows, and does not exit either.
            try session.type("kill -CONT %1; kill -KILL %1 %2 %3; wait; clear; echo over\r")
            try session.wait { $0.suffix(2) == ["over", ">"] }
        }
    }

    /// Process numbers differ, and with them the widths of columns.
    private static func withoutNumbers(_ lines: [String]) -> [String] {
        lines.map { line in
            line.replacing(/\ +/) { _ in " " }.replacing(/^(org\S+ )[0-9]+ portctl\S*/) { "\($0.output.1)1 portctl…" }
        }
    }

    @Test("a line is as wide as the terminal, and NO_COLOR is heeded")
    func width() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("org.example.a.long.name", in: scratch)
            let program = try builtProduct("portctl")
            let arguments = ["list", "--timeout", "1h", "--directory", scratch.path("names")]
            try await offThePool {
                let session = try TerminalSession(program, arguments, columns: 60, environment: ["NO_COLOR": "1"])
                #expect(try session.end() == 0)
                let lines = session.output.split(separator: "\r\n")
                #expect(lines.count == 2 && lines.allSatisfy { $0.count <= 60 && !$0.contains("\u{1B}") })
                let reply = try TerminalSession(
                    program, ["request", "org.example.a.long.name", "1", "hello", "--directory", scratch.path("names")])
                #expect(try reply.end() == 0)
                #expect(reply.output == "hello\r\n")
            }
            #expect(try await PortctlServer.stop("org.example.a.long.name", in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("a long message shows on a terminal how much of it has been sent")
    func progress() async throws {
        try await withScratchDirectory { scratch in
            // No thread receives, nor accepts clients, so the message stays in transit until its limit.
            let names = try PortNameServer(directory: scratch.path("names"))
            let port = MachPort(queueLimit: 1)
            port.setPeerPolicy(PeerPolicy { _ in true })
            try names.register(port, name: "silent")
            let body = scratch.path("body")
            try Data(repeating: 7, count: 4 << 20).write(to: URL(fileURLWithPath: body))
            let program = try builtProduct("portctl")
            try await offThePool {
                let session = try TerminalSession(
                    program,
                    ["send", "silent", "1", "--file", body, "--timeout", "1h", "--directory", scratch.path("names")])
                try session.read(until: " of 4M, ")
                session.kill(SIGTERM)
                #expect(try session.end() == 128 + SIGTERM)
            }
            port.invalidate()
        }
    }

    @Test("the page about portctl shows what it does")
    func page() async throws {
        let block = try #require(try Document("Docs/portctl.md").blocks("terminal").first)
        let lines = block.split(separator: "\n").map(String.init)
        let commands = lines.filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
        let shown = lines.filter { !$0.hasPrefix("$ ") }
        // A server does not notice at a fixed time that a client has gone.
        let name = try #require(commands.first { $0.hasPrefix("portctl serve ") }?.split(separator: " ")[2])
        let hasGone = "for i in $(seq 1000); do portctl info \(name) --json | grep -q '\"peers\":0,' && break; done"
        let script = commands.flatMap { $0.hasPrefix("portctl list") ? [hasGone, $0] : [$0] } + ["wait"]
        try await withScratchDirectory { scratch in
            let script = #"exec 2>&1; PATH="$PRODUCTS:$PATH"; "# + script.joined(separator: "\n")
            let products = URL(fileURLWithPath: try builtProduct("portctl")).deletingLastPathComponent().path
            let shell = try ChildProcess(
                "/bin/sh", ["-c", script], environment: ["PRODUCTS": products, "XDG_RUNTIME_DIR": scratch.path])
            let result = try await shell.waitForExit()
            #expect(result.end == .exited(0))
            let written = result.output.split(separator: "\n").map(String.init)
            #expect(written.map(Self.withoutWidths) == shown.map(Self.withoutWidths))
        }
    }

    @Test("the page shows how serve is started on demand")
    func activatePage() async throws {
        let block = try #require(try Document("Docs/portctl.md").blocks("terminal activate").first)
        let lines = block.split(separator: "\n").map(String.init)
        let commands = lines.filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
        try #require(commands.count == 2)
        try await withScratchDirectory(leaving: .anything) { scratch in
            let script =
                #"exec 2>&1; PATH="$PRODUCTS:$PATH"; "# + commands.joined(separator: "\n")
                + "\nportctl send org.example.act 0; kill $!; wait"
            let products = URL(fileURLWithPath: try builtProduct("portctl")).deletingLastPathComponent().path
            let shell = try ChildProcess(
                "/bin/sh", ["-c", script], environment: ["PRODUCTS": products, "XDG_RUNTIME_DIR": scratch.path])
            let result = try await shell.waitForExit()
            #expect(result == done(lines.filter { !$0.hasPrefix("$ ") }.map { $0 + "\n" }.joined()))
        }
    }

    /// The line without what depends on the number of a process.
    private static func withoutWidths(_ line: String) -> String {
        line.split(separator: " ").joined(separator: " ").replacing(/\ [0-9]+ portctl/) { _ in " 1 portctl" }
    }
}

extension String {
    fileprivate var lines: [String] { split(separator: "\n").map(String.init) }
}
