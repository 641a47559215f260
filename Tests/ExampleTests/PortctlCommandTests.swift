// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("portctl: commands", .portLeakCheck)
struct PortctlCommandTests {
    @Test("a command answers: its output is the reply, its status an error")
    func command() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("upper", in: scratch, ["--", "tr", "a-z", "A-Z"])
            let text = String(repeating: "many lines\n", count: 20_000)
            let client = try ChildProcess(
                builtProduct("portctl"), ["request", "--directory", scratch.path("names"), "upper", "1", "-"])
            try client.write(text)
            #expect(try await client.waitForExit() == done(text.uppercased()))
            #expect(try await portctl(["send", "upper", "0"], in: scratch) == done())
            #expect(try await server.end() == done())

            let script = "cat; exit $PORT_MESSAGE_ID"
            let failing = try await PortctlServer("failing", in: scratch, ["--", "sh", "-c", script])
            let result = try await portctl(["request", "failing", "7", "x"], in: scratch)
            #expect(result.end == .exited(5))
            #expect(result.errors.contains(#"(its code 7, it says "The command ended with status 7.", "#))
            #expect(try await portctl(["send", "failing", "0"], in: scratch) == done())
            #expect(try await failing.end() == done())
        }
    }

    @Test("a reply is written as it is, or in digits; a file is sent")
    func forms() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let hex = "00000000  68 65 6c 6c 6f                                   hello\n"
            #expect(try await portctl(["request", "echo", "1", "hello", "--hex"], in: scratch) == done(hex))
            try "of a file".write(toFile: scratch.path("body"), atomically: false, encoding: .utf8)
            let file = try await portctl(["request", "echo", "1", "--file", scratch.path("body")], in: scratch)
            #expect(file == done("of a file"))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("wait ends when the name is there, and gives up when it does not come")
    func wait() async throws {
        try await withScratchDirectory { scratch in
            try makeNames(in: scratch)
            let waiter = try ChildProcess(
                builtProduct("portctl"), ["wait", "echo", "--timeout", "1h", "--directory", scratch.path("names")])
            let server = try await PortctlServer("echo", in: scratch)
            #expect(try await waiter.waitForExit() == done())
            let late = try await portctl(["wait", "other", "--timeout", "1ms"], in: scratch)
            #expect(late.end == .exited(4) && isOneLine(late.errors))
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("watch prints each message that a port receives, in order")
    func watch() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            let watcher = try ChildProcess(
                "/bin/sh",
                [
                    "-c", "exec \"$0\" watch echo --count 2 --directory \"$1\" 2>&1", builtProduct("portctl"),
                    scratch.path("names"),
                ])
            // The watch has begun when a message is shown; those before it were not.
            var id: Int32 = 100
            let deadline = Watchdog.deadline
            repeat {
                _ = try await portctl(["request", "echo", "\(id)", "hello"], in: scratch)
                id += 1
            } while watcher.isRunning && .now < deadline
            #expect(!watcher.isRunning, "nothing is shown")
            watcher.kill()
            let lines = try await watcher.waitForExit().output.split(separator: "\n")
            #expect(lines.count == 2)
            for line in lines {
                #expect(line.wholeMatch(of: /request [1-9][0-9]{2,} from process [0-9]+: 5 bytes  "hello"/) != nil)
            }
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
            let port = try LocalMessagePort(name: "mine", nameServer: PortNameServer(directory: scratch.path("names")))
            {
                _, _ in nil
            }
            let thread = try ResidentThread(name: "owner")
            try port.schedule(on: thread.loop)
            let refused = try await portctl(["watch", "mine"], in: scratch)
            #expect(refused.end == .exited(1) && refused.errors.contains("setAllowsWatching"))
            port.invalidate()
            await offThePool {
                thread.stop(); _ = thread.join()
            }
        }
    }

    @Test("activate starts the command at the first connection, and hands the name over")
    func activate() async throws {
        try await withScratchDirectory { scratch in
            let supervisor = try ChildProcess(
                "/bin/sh",
                [
                    "-c",
                    "exec \"$0\" activate org.example.far --once --directory \"$1\" -- \"$2\" activated-local \"$1\" org.example.far 2>&1",
                    builtProduct("portctl"), scratch.path("names"), builtProduct("port-test-peer"),
                ])
            let line = try await offThePool { try supervisor.nextLine() }
            #expect(line == "portctl: Process \(supervisor.processID) listens for org.example.far.")
            let request = try await portctl(["request", "org.example.far", "1", "abc"], in: scratch)
            #expect(request == done("cba"))
            #expect(try await offThePool { try supervisor.nextLine() } == "checked in as org.example.far")
            #expect(try await portctl(["list", "--names"], in: scratch) == done("org.example.far\n"))
            // The command ends with its standard input, and what activates it with the command.
            #expect(try await supervisor.waitForExit().end == .exited(0))
            let declared = try FileManager.default.contentsOfDirectory(atPath: scratch.path("names/declared"))
            #expect(declared == [])
        }
    }

    @Test("bench does every check, and each as often as there is time for")
    func bench() async throws {
        try await withScratchDirectory { scratch in
            let own = scratch.path("own")
            let result = try await run(
                "portctl", ["bench", "--quick", "--json", "--directory", own], namesIn: scratch)
            #expect(result.end == .exited(0) && result.errors == "")
            let checks = try #require(
                try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
            #expect(checks.count == 8)
            for check in checks { #expect(check["times"] as? Int ?? 0 >= 8) }
            #expect(try heldNames(in: scratch) == [])
            // The name of the check was there, and not among the user's.
            #expect(try FileManager.default.contentsOfDirectory(atPath: own).sorted() == ["locks", "names", "sockets"])
        }
    }
}
