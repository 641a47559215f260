// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("portctl: trace", .portLeakCheck)
struct PortctlTraceTests {
    /// The names of the events of a trace.
    private static func names(in trace: String) throws -> Set<String> {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(trace.utf8)) as? [String: Any])
        let events = try #require(object["traceEvents"] as? [[String: Any]])
        return Set(events.compactMap { $0["name"] as? String })
    }

    private static let expected: Set = ["thread_name", "beforeWaiting"]

    @Test("trace writes what the loops of a process that agrees do, and reports one that does not, or is absent")
    func trace() async throws {
        try await withScratchDirectory { scratch in
            let program = try ChildProcess(builtProduct("port-test-peer"), ["traced", scratch.path("names")])
            #expect(try await offThePool { try program.nextLine() } == "traced")
            let file = scratch.path("trace.json")
            for output in [file, "-"] {
                var names: Set<String> = []
                let deadline = Watchdog.deadline
                // Where the machine is busy the program has done nothing in that time.
                while !names.isSuperset(of: Self.expected) {
                    try #require(.now < deadline, "the trace has only \(names)")
                    let result = try await portctl(
                        ["trace", "\(program.processID)", "--duration", "20ms", "--output", output], in: scratch)
                    try #require(result.end == .exited(0) && result.errors == "")
                    let trace = output == "-" ? result.output : try String(contentsOfFile: file, encoding: .utf8)
                    names = try Self.names(in: trace)
                }
            }
            #expect(try await program.waitForExit().end == .exited(0))
            let gone = try await portctl(["trace", "\(program.processID)"], in: scratch)
            #expect(gone.end == .exited(3))
            #expect(gone.errors == "portctl: There is no process \(program.processID).\n")
            let other = try await portctl(["trace", "\(PeerIdentity.current.processID)"], in: scratch)
            #expect(other.end == .exited(3))
            let sentence = "does not let itself be traced; have its program call TraceService.start().\n"
            #expect(other.errors == "portctl: Process \(PeerIdentity.current.processID) \(sentence)")
        }
    }

    @Test("portctl serve lets itself be traced, and its service is in the list only on request")
    func served() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let process = server.process.processID
            let trace = try await portctl(["trace", "\(process)", "-d", "1ms", "-o", "-"], in: scratch)
            #expect(trace.end == .exited(0) && trace.errors == "")
            #expect(try Self.names(in: trace.output).contains("thread_name"))
            #expect(try await portctl(["list", "--names"], in: scratch) == done("echo\n"))
            #expect(try await portctl(["list", "--names", "-a"], in: scratch) == done("echo\ntrace.\(process)\n"))
            #expect(try await portctl(["info", "trace.\(process)"], in: scratch).end == .exited(0))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("a file that cannot be written is reported before recording begins; one that was there stays without a trace")
    func output() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let bad = scratch.path("none/trace.json")
            let refused = try await portctl(
                ["trace", "\(server.process.processID)", "-d", "1h", "-o", bad], in: scratch)
            #expect(refused.end == .exited(1) && isOneLine(refused.errors) && refused.errors.contains(bad))
            let (mark, old) = (scratch.path("ran"), scratch.path("old.json"))
            #expect(try await portctl(["trace", "-o", bad, "--", "touch", mark], in: scratch).end == .exited(1))
            #expect(!FileManager.default.fileExists(atPath: mark))
            try "old".write(toFile: old, atomically: false, encoding: .utf8)
            #expect(try await portctl(["trace", "-o", old, "--", "touch", mark], in: scratch).end == .exited(1))
            #expect(try String(contentsOfFile: old, encoding: .utf8) == "old")
            #expect(FileManager.default.fileExists(atPath: mark))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("a signal ends the recording of a process, and it is written")
    func interrupted() async throws {
        try await withScratchDirectory { scratch in
            let program = try ChildProcess(builtProduct("port-test-peer"), ["traced", scratch.path("names")])
            #expect(try await offThePool { try program.nextLine() } == "traced")
            let (file, tool) = (scratch.path("trace.json"), try builtProduct("portctl"))
            try await offThePool {
                let session = try TerminalSession(
                    tool,
                    ["trace", "\(program.processID)", "-d", "1h", "-o", file, "--directory", scratch.path("names")])
                try session.read(until: "for 1h 0m; Ctrl-C ends.")
                session.kill(SIGINT)
                #expect(try session.end() == 0)
            }
            #expect(try Self.names(in: String(contentsOfFile: file, encoding: .utf8)).isSuperset(of: ["thread_name"]))
            #expect(try await program.waitForExit().end == .exited(0))
        }
    }

    @Test("trace -- COMMAND records it until it exits, and has its status; elsewhere it leaves nothing")
    func command() async throws {
        try await withScratchDirectory { scratch in
            let file = scratch.path("trace.json")
            for output in [file, "-"] {
                let program = try ChildProcess(
                    builtProduct("portctl"),
                    [
                        "trace", "--output", output, "--", builtProduct("port-test-peer"), "traced",
                        scratch.path("names"),
                    ],
                    environment: ["TMPDIR": scratch.path])
                #expect(try await offThePool { try program.nextLine() } == "traced")
                let result = try await program.waitForExit()
                #expect(result.end == .exited(0) && result.errors == "")
                let trace =
                    output == "-"
                    ? String(result.output.dropFirst("traced\n".count))
                    : try String(contentsOfFile: file, encoding: .utf8)
                #expect(try Self.names(in: trace).isSuperset(of: Self.expected))
            }
            try FileManager.default.removeItem(atPath: file)
            let other = try await portctl(["trace", "--output", file, "--", "sh", "-c", "exit 7"], in: scratch)
            #expect(other.end == .exited(7) && other.errors.contains("TraceService.start()"))
            #expect(!FileManager.default.fileExists(atPath: file))
            let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
            #expect(!left.contains { $0.hasPrefix("portctl") })
        }
    }

    @Test(
        "a command that a signal ends leaves its trace, unless it is killed",
        arguments: [SIGTERM, SIGINT, SIGHUP, SIGTRAP, SIGKILL])
    func endedBySignal(_ signal: CInt) async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let file = scratch.path("trace.json")
            let script = "echo $$; exec \"$0\" \"$@\""
            let program = try ChildProcess(
                builtProduct("portctl"),
                ["trace", "--output", file, "--", "sh", "-c", script, builtProduct("port-test-peer"), "traced"]
                    + [scratch.path("names")], environment: ["SWIFT_BACKTRACE": "enable=no"])
            let line = try await offThePool { try program.nextLine() }
            let command = try #require(line.flatMap { Int32($0) })
            #expect(try await offThePool { try program.nextLine() } == "traced")
            kill(command, signal)
            await program.waitUntilEnded()  // without its input it would end by itself
            let result = try await program.waitForExit()
            #expect(result.end == .exited(128 + signal))
            #expect(FileManager.default.fileExists(atPath: file) == (signal != SIGKILL))
            guard signal != SIGKILL else { return #expect(result.errors.contains("has left no trace")) }
            #expect(try Self.names(in: String(contentsOfFile: file, encoding: .utf8)).contains("thread_name"))
        }
    }

    @Test("a command that traps in a handler leaves its trace, with the handler")
    func trap() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let file = scratch.path("trace.json")
            let program = try ChildProcess(
                builtProduct("portctl"),
                [
                    "trace", "--output", file, "--", builtProduct("port-test-peer"), "traced-fault",
                    scratch.path("names"),
                ],
                environment: ["SWIFT_BACKTRACE": "enable=no"])
            await program.waitUntilEnded()  // without its input it would end by itself
            let end = try await program.waitForExit().end
            #expect(end == .exited(128 + SIGILL) || end == .exited(128 + SIGTRAP))
            let names = try Self.names(in: String(contentsOfFile: file, encoding: .utf8))
            #expect(names.contains { $0.hasPrefix("timer \"fault\" #") })
        }
    }

    @Test("a signal that a process sends to portctl goes to the command")
    func handedOn() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let file = scratch.path("trace.json")
            let program = try ChildProcess(
                builtProduct("portctl"),
                ["trace", "--output", file, "--", builtProduct("port-test-peer"), "traced", scratch.path("names")])
            #expect(try await offThePool { try program.nextLine() } == "traced")
            program.kill(SIGTERM)
            await program.waitUntilEnded()  // without its input it would end by itself
            #expect(try await program.waitForExit().end == .exited(128 + SIGTERM))
            #expect(FileManager.default.fileExists(atPath: file))
        }
    }
}
