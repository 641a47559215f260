// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// What the guides of the catalogs show as the output of their code is what it prints. `CodeTests` compares the code.
@Suite("Guides", .leakCheck)
struct GuideTests {
    /// The guides that have a file in `Tests/Guides`.
    private static let names = [
        "FirstLoop", "RunLoopsFromZero", "FirstPorts", "PortsAndRights", "RequestsAndErrors", "CheckingIn",
        "PortsInTasks", "BulkData", "FirstService", "Names", "Porting", "BringYourMacProgram",
    ]

    private static func guide(_ name: String) throws -> Document {
        try #require(try Document.all().first { $0.path.hasSuffix(".docc/\(name).md") }, "there is no guide \(name)")
    }

    @Test("a guide shows what its program prints", arguments: names)
    func output(of name: String) async throws {
        let shown = try Self.guide(name).blocks("output")
        #expect(!shown.isEmpty)
        try await withScratchDirectory { scratch in
            let result = try await run("guides", [name], namesIn: scratch)
            #expect(result == ProcessResult(end: .exited(0), output: shown.joined(separator: "\n") + "\n"))
            #expect(try portFiles(in: scratch) == [])
        }
    }

    @Test("the program of the page about activation is started by its first client, and greets it")
    func activation() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            _ = try await run("portctl", ["list"], namesIn: scratch)  // makes the directory
            let supervisor = try ChildProcess(
                "/bin/sh",
                [
                    "-c", "exec \"$0\" activate org.example.greeter -- \"$1\" Activation 2>&1",
                    builtProduct("portctl"), builtProduct("guides"),
                ], environment: ["XDG_RUNTIME_DIR": scratch.path])
            let line = try await offThePool { try supervisor.nextLine() }
            #expect(line == "portctl: Process \(supervisor.processID) listens for org.example.greeter.")
            let request = ["request", "org.example.greeter", "1", "Ada"]
            #expect(try await run("portctl", request, namesIn: scratch) == done("Hello, Ada!"))
            supervisor.kill(SIGTERM)
            #expect(try await supervisor.waitForExit().end == .exited(0))
        }
    }

    @Test("the program of the page about tracing is recorded from outside, and by itself")
    func tracing() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let tool = try ChildProcess(
                builtProduct("portctl"),
                ["trace", "--output", "outside.json", "--", builtProduct("guides"), "Tracing"],
                environment: ["XDG_RUNTIME_DIR": scratch.path], in: scratch.path)
            let result = try await tool.waitForExit()
            #expect(result.end == .exited(0) && result.errors == "")
            #expect(result.output.contains(/^timer "heartbeat" #[0-9]+ run loop of the main thread [0-9]+\n/))
            #expect(try traceNames(in: scratch.path("outside.json")).contains { $0.contains("\"save\"") })
            _ = try traceNames(in: scratch.path("loops.json"))  // whole, although hardly a moment long
        }
    }

    @Test("every guide that shows code is run here")
    func completeness() throws {
        let guides = try Document.all().filter { $0.path.contains(".docc/") && !$0.blocks("swift").isEmpty }
        #expect(Set(guides.map(\.name)) == Set(Self.names))
    }

    @Test("the package of a guide is that of the README, with the guide's product")
    func manifests() throws {
        let readme = try #require(try Document("README.md").blocks("swift").first)
        var count = 0
        for page in try Document.all() where page.path.contains(".docc/") {
            let product = page.path.split(separator: "/")[1]
            for block in page.blocks("swift") where block.hasPrefix("// swift-tools-version") {
                count += 1
                #expect(block == readme.replacing("NamedPortServer", with: product), "\(page.path)")
            }
        }
        #expect(count == 3)
    }
}
