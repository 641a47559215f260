// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import NamedPortServer
import TestSupport
import Testing

@Suite("portctl: owners that are stopped, busy or dead", .portLeakCheck)
struct PortctlWatchTests {
    @Test(
        "Ctrl-C ends at once every command that waits for an owner that does not answer",
        arguments: [
            (["watch", "stopped", "--timeout", "1h"], nil), (["list", "--watch", "--timeout", "1h"], nil),
            (["list", "--timeout", "1h"], SIGINT), (["info", "stopped", "--timeout", "1h"], SIGINT),
            (["request", "stopped", "1", "--timeout", "1h"], SIGINT), (["trace", "PROCESS", "-o", "FILE"], SIGINT),
        ] as [([String], CInt?)])
    func interrupted(words: [String], signal: CInt?) async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let (process, file) = ("\(PeerIdentity.current.processID)", scratch.path("trace.json"))
            // In no loop, and no other thread asks a policy of the program's: it never answers.
            let port = MachPort()
            port.setPeerPolicy(PeerPolicy { _ in true })
            try names.register(
                port, name: words[0] == "trace" ? TraceService.name(of: PeerIdentity.current.processID) : "stopped")
            let program = try ChildProcess(
                builtProduct("portctl"),
                ["--directory", scratch.path("names")]
                    + words.map { $0 == "PROCESS" ? process : $0 == "FILE" ? file : $0 })
            try await offThePool {
                let sockets = try #require(port.localPort.sockets)
                // It waits for an answer now, or will.
                #expect(try !sysPoll(sockets.rawValue, .readable, until: Watchdog.deadline).isEmpty)
            }
            program.kill(SIGINT)
            let end = try await program.waitForExit().end
            #expect(end == signal.map { .signalled($0) } ?? .exited(0))
            #expect(!FileManager.default.fileExists(atPath: file))
            port.invalidate()
        }
    }

    @Test("watch names the port that does not let itself be watched, and says what its program has to call")
    func notWatchable() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let port = try LocalMessagePort(name: "mine", nameServer: names) { _, _ in nil }
            port.port.setPeerPolicy(PeerPolicy { _ in true })  // asked on the port's threads: it has none
            let silent = try await portctl(["watch", "mine", "--timeout", "1ms"], in: scratch)
            #expect(silent.end == .exited(4) && isOneLine(silent.errors))
            #expect(silent.errors.contains(#"the port "mine""#))
            let thread = try ResidentThread(name: "owner")
            try port.schedule(on: thread.loop)
            let refused = try await portctl(["watch", "mine"], in: scratch)
            #expect(refused.end == .exited(1) && isOneLine(refused.errors))
            #expect(refused.errors.contains("MachPort.setAllowsWatching(true)"))
            #expect(refused.errors.contains(#"the port "mine""#) && !refused.errors.contains("same user"))
            port.invalidate()
            await offThePool {
                thread.stop()
                _ = thread.join()
            }
        }
    }

    @Test("while serve runs a command, its queue is reported; commands run one after the other, in order")
    func busyCommand() async throws {
        try await withScratchDirectory { scratch in
            let gate = scratch.path("gate")
            try #require(mkfifo(gate, 0o600) == 0)
            let server = try await PortctlServer(
                "slow", in: scratch,
                ["--", "sh", "-c", "read line <\"$0\"; echo \"$PORT_MESSAGE_ID $line\" >>\"$0.log\"", gate])
            var information = ""
            for id in 1...3 {
                #expect(try await portctl(["send", "slow", "\(id)"], in: scratch) == done())
                // Each comes over a connection of its own: their order is known when they have come.
                information = try await portctlInfo("slow", in: scratch) { $0.contains(#""messages":\#(id),"#) }
            }
            #expect(try await server.line()?.hasPrefix("message 1 ") == true)
            information = try await portctlInfo("slow", in: scratch) { $0.contains(#""queued":2,"#) }
            #expect(information.contains(#""state":"running""#) && information.contains(#""messages":3,"#))
            try await offThePool {
                for word in ["a", "b", "c"] {
                    let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: gate))
                    try writer.write(contentsOf: Data("\(word)\n".utf8))
                    try writer.close()
                    while try Self.count(of: gate + ".log") < Int(UnicodeScalar(word)!.value) - 96 { yieldThread() }
                }
            }
            #expect(try String(contentsOfFile: gate + ".log", encoding: .utf8) == "1 a\n2 b\n3 c\n")
            #expect(try await portctl(["send", "slow", "0"], in: scratch) == done())
            for _ in 0..<3 { _ = try await server.line() }
            #expect(try await server.end() == done())
        }
    }

    private static func count(of log: String) throws -> Int {
        guard let text = try? String(contentsOfFile: log, encoding: .utf8) else { return 0 }
        return text.count { $0 == "\n" }
    }

    @Test("serve's queue is as long as the port's, and goes on when it was full")
    func fullQueue() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("slow", in: scratch, ["--", "sh", "-c", "cat >/dev/null"])
            let right = try await PortNameServer(directory: scratch.path("names")).lookUp("slow")
            // The request gives the thread a loop: it is waited for.
            try await onNewThread {
                for _ in 0..<80 { try right.send(MachMessage(id: 1), within: Watchdog.longTimeout) }
                let reply = try right.request(MachMessage(id: 0, text: "bye"), replyLimit: Watchdog.longTimeout)
                #expect(reply.text == "bye")
            }
            #expect(try await server.end() == done())
        }
    }

    @Test("a request to an owner that was killed says so")
    func deadOwner() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let server = try await PortctlServer("dead", in: scratch)
            let waiting = try await PortctlServer("waits", in: scratch, ["--", "sh", "-c", "kill -9 $PPID"])
            server.process.kill()
            #expect(try await server.end().end == .signalled(9))
            let result = try await portctl(["request", "dead", "1"], in: scratch)
            #expect(result.end == .exited(3) && isOneLine(result.errors))
            #expect(result.errors == "portctl: No live port has the name (\"dead\"); start its owner first.\n")
            let lost = try await portctl(["request", "waits", "1"], in: scratch)
            #expect(lost.end == .exited(3) && isOneLine(lost.errors))
            #expect(lost.errors.hasPrefix("portctl: The receiver went away before it replied ("))
            #expect(lost.errors.contains(#"the port "waits""#))
            #expect(try await waiting.end().end == .signalled(9))
        }
    }

    @Test("a file that cannot be read is named")
    func unreadable() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("echo", in: scratch)
            for (path, reason) in [(scratch.path, "Is a directory"), (scratch.path("none"), "No such file")] {
                let result = try await portctl(["request", "echo", "1", "--file", path], in: scratch)
                #expect(result.end == .exited(1) && isOneLine(result.errors))
                #expect(result.errors.contains("(\(path), the kernel says: ") && result.errors.contains(reason))
            }
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }
}
