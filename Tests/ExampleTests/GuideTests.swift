// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The code in the guides of the catalogs is code of `Tests/Guides`, in the file with the guide's name, and what they show as
/// its output is what it prints.
@Suite("Guides", .census)
struct GuideTests {
    /// The guides that have a file in `Tests/Guides`.
    private static let names = [
        "FirstLoop", "RunLoopsFromZero", "FirstPorts", "PortsAndRights", "RequestsAndErrors", "CheckingIn",
        "PortsInTasks", "FirstService", "Names", "Porting",
    ]

    private static func guide(_ name: String) throws -> Document {
        try #require(try Document.all().first { $0.path.hasSuffix(".docc/\(name).md") }, "there is no guide \(name)")
    }

    @Test("the code in a guide is code of its program", arguments: names)
    func code(of name: String) throws {
        let source = try String(
            contentsOfFile: Document.packageDirectory + "/Tests/Guides/\(name).swift", encoding: .utf8)
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let blocks = try Self.guide(name).blocks("swift").filter { !$0.hasPrefix("// swift-tools-version") }
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(block.count { $0 == "{" } == block.count { $0 == "}" }, "a block is not whole:\n\(block)")
            let code = block.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(
                contains(code, in: lines) || code.allSatisfy(isImport), "not in Tests/Guides/\(name).swift:\n\(block)")
        }
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

    @Test("every guide that shows code is tested here, and every file of code is a guide's")
    func completeness() throws {
        let guides = try Document.all().filter { $0.path.contains(".docc/") && !$0.blocks("swift").isEmpty }
        #expect(Set(guides.map(name)) == Set(Self.names))
        let files = try FileManager.default.contentsOfDirectory(atPath: Document.packageDirectory + "/Tests/Guides")
        #expect(Set(files) == Set(Self.names.map { $0 + ".swift" } + ["main.swift"]))
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

    private func name(of page: Document) -> String {
        URL(fileURLWithPath: page.path).deletingPathExtension().lastPathComponent
    }

    private func isImport(_ line: Substring) -> Bool { line.hasPrefix("import ") }

    /// Whether the lines are there, one after the other, all with the same white space before them.
    private func contains(_ code: [Substring], in lines: [Substring]) -> Bool {
        lines.indices.dropLast(code.count - 1).contains { start in
            let indentation = lines[start].prefix { $0 == " " }
            return zip(code, lines[start...]).allSatisfy { shown, line in
                shown.isEmpty ? line.isEmpty : line == indentation + shown
            }
        }
    }
}
