// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite("Greeter", .leakCheck)
struct GreeterTests {
    @Test("a greeter that gets no answer ends with one sentence and a status, not with a crash")
    func alone() async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("greeter", ["Ada"], namesIn: scratch)
            #expect(result.end == .exited(1) && result.output == "")
            #expect(isOneLine(result.errors) && result.errors.contains("(\"org.example.greeter\");"))
        }
    }

    @Test("the README's program is the greeter, and its output that of the greeter's README")
    func program() throws {
        let readme = try Document("README.md")
        let shown = try #require(readme.blocks("swift").first { $0.hasPrefix("import Foundation") })
        let source = try Document("Examples/Greeter/main.swift").text
        let program = source.split(separator: "\n", omittingEmptySubsequences: false).drop {
            $0.hasPrefix("//") || $0 == ""
        }
        #expect(shown + "\n" == program.joined(separator: "\n"))
        #expect(try Document("Examples/Greeter/README.md").blocks("output") == readme.blocks("output"))
    }
}
