// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import RunLoopCore
import TestSupport
import Testing

@Suite("portctl: handover", .portLeakCheck)
struct PortctlHandoverTests {
    /// Hands the name over to a command, which gets `PORTCTL`, and whose output is not that of this.
    private func handOver(_ name: String, to script: String, in scratch: ScratchDirectory) async throws -> ProcessResult
    {
        let process = try ChildProcess(
            builtProduct("portctl"),
            [
                "--directory", scratch.path("names"), "handover", name, "--", "sh", "-c",
                "exec >/dev/null 2>&1; \(script)",
            ],
            environment: ["PORTCTL": builtProduct("portctl")])
        return try await process.waitForExit()
    }

    @Test("a service is handed over to another process, again and again, while a client asks")
    func service() async throws {
        try await withScratchDirectory { scratch in
            let first = try await PortctlServer("echo", in: scratch)
            let names = try PortNameServer(directory: scratch.path("names"))
            let client = try await RemoteMessagePort(name: "echo", nameServer: names)
            #expect(try await client.request(MachMessage(id: 1, text: "before")).text == "before")
            var owner = first.process.processID
            for round in 0..<3 {
                let result = try await handOver("echo", to: #"exec "$PORTCTL" serve echo"#, in: scratch)
                #expect(result.end == .exited(0), "\(result)")
                let line = /portctl: Process ([0-9]+) serves echo now, in place of process ([0-9]+)\.\n/
                let numbers = try #require(result.errors.wholeMatch(of: line)?.output, "\(result)")
                #expect(numbers.2 == "\(owner)")
                let next = try #require(Int32(numbers.1))
                #expect(next != owner)
                #expect(try await client.request(MachMessage(id: 1, text: "\(round)")).text == "\(round)")
                #expect(try client.right.owner().processID == next)
                // It has answered: the port has arrived.
                #expect(try names.list().first { $0.name == "echo" }?.owner == next)
                owner = next
            }
            #expect(try await first.end() == done())
            #expect(try await portctl(["send", "echo", "0"], in: scratch) == done())
            try await client.right.waitUntilDead()
        }
    }

    @Test("an owner that does not allow it goes on, and the command is ended")
    func notAllowed() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let service = try LocalMessagePort(name: "mine", nameServer: names) { _, _ in nil }
            let worker = try ResidentThread(name: "worker")
            try service.schedule(on: worker.loop)
            let result = try await handOver("mine", to: #"exec "$PORTCTL" serve mine"#, in: scratch)
            #expect(result.end == .exited(1))
            #expect(isOneLine(result.errors))
            #expect(result.errors.contains("setAllowsHandOver(true)"))
            #expect(service.isValid)
            #expect(!service.allowsHandOver)
            service.invalidate()
            await worker.end()
        }
    }

    @Test("without an owner, or a command that checks in, nothing changes")
    func nothing() async throws {
        try await withScratchDirectory { scratch in
            try makeNames(in: scratch)
            #expect(try await handOver("nobody", to: "exit 0", in: scratch).end == .exited(3))
            let server = try await PortctlServer("echo", in: scratch)
            let ended = try await handOver("echo", to: "exit 0", in: scratch)
            #expect(ended.end == .exited(1))
            #expect(ended.errors.hasPrefix("portctl: The command ended before it checked in"))
            let missing = try await portctl(["handover", "echo", "--", "/no/such/command"], in: scratch)
            #expect(missing.end == .exited(1))
            let slow = try await portctl(
                ["handover", "echo", "--timeout", "200ms", "--", "sh", "-c", "exec sleep 1000 >/dev/null 2>&1"],
                in: scratch)
            #expect(slow.end == .exited(1))
            #expect(slow.errors.contains("--timeout"))
            #expect(try await portctl(["request", "echo", "1", "here"], in: scratch) == done("here"))
            #expect(try await PortctlServer.stop("echo", in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }
}

extension SendRight {
    /// Waits until the port has ended.
    fileprivate func waitUntilDead() async throws {
        let (ended, worker) = (Gate("the port's end"), try ResidentThread(name: "worker"))
        try notifyWhenDead(on: worker.loop) { _ in ended.open() }
        _ = await offThePool { ended.wait() }
        await worker.end()
    }
}

extension ResidentThread {
    /// Ends it, and waits for that.
    fileprivate func end() async {
        await offThePool { [self] in
            stop()
            join()
        }
    }
}
