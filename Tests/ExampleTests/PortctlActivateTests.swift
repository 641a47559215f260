// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

@Suite("portctl: activate", .portLeakCheck)
struct PortctlActivateTests {
    /// The command that checks in, and reverses what it gets.
    private static let reverser = [
        "sh", "-c", "exec \"$PEER\" activated-local \"$DIRECTORY\" org.example.far >/dev/null",
    ]

    /// Starts `portctl activate`, and waits until it listens. Its standard error comes with its output.
    private func activate(_ name: String, in scratch: ScratchDirectory, _ words: [String]) async throws -> ChildProcess
    {
        let process = try ChildProcess(
            "/bin/sh",
            ["-c", "exec \"$0\" activate --directory \"$DIRECTORY\" \"$@\" 2>&1", builtProduct("portctl"), name]
                + words,
            environment: ["DIRECTORY": scratch.path("names"), "PEER": builtProduct("port-test-peer")])
        let line = try await offThePool { try process.nextLine() }
        try #require(line == "portctl: Process \(process.processID) listens for \(name).")
        return process
    }

    private func declared(in scratch: ScratchDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: scratch.path("names/declared"))
    }

    @Test("the command is started at the first connection, and again at the next when it has ended")
    func restart() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let supervisor = try await activate("org.example.far", in: scratch, ["--"] + Self.reverser)
            #expect(try names.list() == [])
            var owners: [Int32] = []
            for _ in 0..<2 {
                #expect(try await portctl(["request", "org.example.far", "1", "abc"], in: scratch) == done("cba"))
                owners += try names.list().map(\.owner)
                kill(try #require(owners.last), SIGKILL)
                let line = try await offThePool { try supervisor.nextLine() }
                #expect(line == "portctl: The command was ended by signal 9.")
            }
            #expect(owners.count == 2 && owners.first != owners.last)
            supervisor.kill(SIGTERM)
            #expect(try await supervisor.waitForExit().end == .exited(0))
            #expect(try declared(in: scratch) == [])
        }
    }

    @Test("portctl serve takes over the name for which portctl activate listens")
    func served() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let command = [
                "--", try builtProduct("portctl"), "--directory", scratch.path("names"), "serve", "act", "-q",
            ]
            let supervisor = try await activate("act", in: scratch, command)
            for text in ["one", "two"] {
                #expect(try await portctl(["request", "act", "1", text], in: scratch) == done(text))
                let owners = try names.list().filter { $0.name == "act" }.map(\.owner)
                #expect(owners.count == 1 && owners != [supervisor.processID])
                #expect(try declared(in: scratch) == ["act"])
                #expect(try await portctl(["request", "act", "0", text], in: scratch) == done(text))
                // Until it has ended it may accept the next client, only to report to it that it ends.
                let owner = try #require(owners.first)
                let deadline = Watchdog.deadline
                await offThePool { while kill(owner, 0) == 0, .now < deadline { yieldThread() } }
            }
            supervisor.kill(SIGTERM)
            #expect(try await supervisor.waitForExit().end == .exited(0))
            #expect(try declared(in: scratch) == [])
        }
    }

    @Test("the command finds the names of --directory by itself")
    func directory() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let command = ["--once", "--", try builtProduct("portctl"), "serve", "act", "-q", "--", "sh", "-c"]
            let list = "\"$PORTCTL\" list --names"
            let supervisor = try await activate(
                "act", in: scratch, command + ["PORTCTL='\(try builtProduct("portctl"))'; \(list)"])
            #expect(try await portctl(["request", "act", "1"], in: scratch) == done("act\n"))
            #expect(try names.list().map(\.name).contains("act"))
            #expect(try await portctl(["request", "act", "0"], in: scratch) == done())
            #expect(try await supervisor.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "a signal ends the command, and a second one also a command that ignores the first", arguments: [false, true])
    func signals(ignores: Bool) async throws {
        try await withScratchDirectory { scratch in
            let script = (ignores ? "trap '' TERM; " : "") + "echo $$; exec sleep 10000"
            let supervisor = try await activate("name", in: scratch, ["--", "sh", "-c", script])
            let right = try await PortNameServer(directory: scratch.path("names")).lookUp("name")
            let line = try await offThePool { try supervisor.nextLine() }
            let command = try #require(line.flatMap { Int32($0) })
            supervisor.kill(SIGINT)
            if ignores { supervisor.kill(SIGTERM) }
            #expect(try await supervisor.waitForExit().end == .exited(0))
            #expect(kill(command, 0) == -1 && errno == ESRCH)
            #expect(try declared(in: scratch) == [])
            withExtendedLifetime(right) {}
        }
    }

    @Test("a name that a port, another portctl, or another supervisor has is in use")
    func taken() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let port = MachPort()
            try names.register(port, name: "held")
            let supervisor = try await activate("listened", in: scratch, ["--", "true"])
            let foreign = SharedDescriptor(try sysPacketSocket())
            try sysBind(foreign.rawValue, path: scratch.path("names/declared/foreign"))
            try sysListen(foreign.rawValue, backlog: 1)
            let own = PeerIdentity.current.processID
            for (name, owner) in [("held", own), ("listened", supervisor.processID), ("foreign", own)] {
                let result = try await portctl(["activate", name, "--", "true"], in: scratch)
                #expect(result.end == .exited(1) && isOneLine(result.errors))
                #expect(result.errors.hasPrefix("portctl: Another port holds the name ("), "\(name)")
                #expect(result.errors.contains("(\"\(name)\", owner: process \(owner));"))
            }
            #expect(try declared(in: scratch).sorted() == ["foreign", "listened"])
            port.invalidate()
            supervisor.kill(SIGTERM)
            #expect(try await supervisor.waitForExit().end == .exited(0))
            #expect(try declared(in: scratch) == ["foreign"])
        }
    }

    @Test("what a killed portctl has left is reused; what another program has put there stays")
    func remains() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let killed = try await activate("name", in: scratch, ["--", "true"])
            killed.kill()
            #expect(try await killed.waitForExit().end == .signalled(9))
            #expect(try declared(in: scratch) == ["name"])
            #expect(try await portctl(["list", "--names"], in: scratch) == done())
            let next = try await activate("name", in: scratch, ["--", "true"])
            let other = SharedDescriptor(try sysPacketSocket())
            try FileManager.default.removeItem(atPath: scratch.path("names/declared/name"))
            try sysBind(other.rawValue, path: scratch.path("names/declared/name"))
            next.kill(SIGTERM)
            #expect(try await next.waitForExit().end == .exited(0))
            #expect(try declared(in: scratch) == ["name"])
        }
    }

    @Test("a command that ends again and again without accepting its clients is given up")
    func givenUp() async throws {
        try await withScratchDirectory { scratch in
            let supervisor = try await activate("name", in: scratch, ["--", "sh", "-c", "exit 3"])
            let right = try await PortNameServer(directory: scratch.path("names")).lookUp("name")
            let result = try await supervisor.waitForExit()
            #expect(result.end == .exited(1))
            let lines = result.output.split(separator: "\n").map(String.init)
            #expect(
                lines.dropFirst().dropLast()
                    == Array(repeating: "portctl: The command ended with status 3.", count: 5)[...])
            #expect(lines.last?.hasPrefix("portctl: The command was started 5 times in 10 seconds") == true)
            #expect(try declared(in: scratch) == [])
            withExtendedLifetime(right) {}
        }
    }
}
