// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// What `Tests/newcomer` promises, with a compiler that is none: the whole of it is a step of `.ci/run`.
@Suite("The newcomer's path", .leakCheck)
struct NewcomerTests {
    /// Follows the README with a `swift` that does something else.
    private func follow(running commands: String, seconds: String) async throws -> (ProcessResult, environment: String)
    {
        try await withScratchDirectory { scratch in
            let tools = scratch.path("usr/bin")
            try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: true)
            let swift = """
                #!/bin/sh
                if [ "$1" = -print-target-info ]; then
                    echo '"runtimeResourcePath": "\(scratch.path("usr/lib/swift"))",'
                else
                    env > '\(scratch.path("environment"))'
                    \(commands)
                fi
                """
            try scratch.write(swift, to: "usr/bin/swift")
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: tools + "/swift")
            let script = try ChildProcess(
                Document.packageDirectory + "/Tests/newcomer", [scratch.path("work")],
                environment: [
                    "PATH": "\(tools):/usr/bin:/bin", "NEWCOMER_SECONDS": seconds, "DEVELOPERS_OWN": "setting",
                ])
            let result = try await script.waitForExit()
            return (result, (try? String(contentsOfFile: scratch.path("environment"), encoding: .utf8)) ?? "")
        }
    }

    @Test("its commands have an empty home, and nothing of the developer's environment")
    func environment() async throws {
        let shown = try #require(try Document("README.md").blocks("output").first)
        let (result, environment) = try await follow(running: "echo '\(shown)'; ls -A \"$HOME\"", seconds: "0")
        #expect(result.end == .exited(0), "\(result.errors)")
        #expect(result.output.contains("newcomer: README.md is right"))
        let names = Set(environment.split(separator: "\n").compactMap { $0.split(separator: "=").first })
        #expect(names.subtracting(["PWD", "OLDPWD", "SHLVL", "_"]) == ["PATH", "HOME", "XDG_RUNTIME_DIR"])
    }

    @Test("a program that does not run within the time that the README promises fails it, with a sentence")
    func limit() async throws {
        let (result, _) = try await follow(running: "exec sleep 1000000", seconds: "0.3")
        #expect(result.end == .exited(1))
        #expect(result.errors.contains("took more than 0.3 s; it promises a running program in five minutes"))
    }

    @Test("other output than the README shows, or a command that fails, fails it")
    func failures() async throws {
        let (other, _) = try await follow(running: "echo 'Good morning.'", seconds: "0")
        #expect(other.end == .exited(1) && other.errors.contains("README.md shows other output"))
        let (failed, _) = try await follow(running: "exit 7", seconds: "0")
        #expect(failed.end == .exited(1) && failed.errors.contains("ended with status 7"))
    }
}
