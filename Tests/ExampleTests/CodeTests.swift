// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// All code that people read is compiled: that of a page is in the file of `Tests/Guides` with the page's name, that of
/// the comments of declarations in `Comments.swift` there, and the program of the README is the example `greeter`.
@Suite("Code in pages and comments", .leakCheck)
struct CodeTests {
    @Test("a block of code in a page is code of the file with the page's name", arguments: try pagesWithCode())
    func pages(_ page: String) throws {
        let document = try Document(page)
        let file = page == "README.md" ? "Examples/Greeter/main.swift" : "Tests/Guides/\(document.name).swift"
        // Manifests are compared by `GuideTests`, and tried by `Tests/newcomer`.
        let blocks = document.blocks("swift").filter { !$0.hasPrefix("// swift-tools-version") }
        try expect(blocks, in: file, of: page)
    }

    @Test("a block of code in the comment of a declaration is compiled")
    func comments() throws {
        var count = 0
        for page in try Document.comments() {
            let blocks = page.blocks("swift")
            count += blocks.count
            try expect(blocks, in: "Tests/Guides/Comments.swift", of: page.path)
        }
        #expect(count >= 5)
    }

    @Test("every file of code is a page's, or the comments'")
    func files() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Document.packageDirectory + "/Tests/Guides")
        let pages = try Self.pagesWithCode().filter { $0 != "README.md" }.map { try Document($0).name + ".swift" }
        #expect(Set(files) == Set(pages + ["Comments.swift", "main.swift"]))
        #expect(Set(pages).count == pages.count, "two pages have one name")
    }

    @Test("no code hides from these tests: a block says what it is")
    func languages() throws {
        for page in try Document.all() + Document.comments() {
            #expect(page.indentedCode == [], "\(page.path): put it between lines of three backquotes")
            for block in page.fenced where !["swift", "sh"].contains(block.information) {
                let code = block.contents.split(separator: "\n").filter {
                    $0.contains(
                        /^ *(?:@?[a-z]+ )*(?:import|let|var|func|try|await|guard|struct|class|actor|enum) [A-Za-z_]/)
                }
                #expect(code.isEmpty, "\(page.path): is this Swift? Then write ```swift.")
            }
        }
    }

    @Test("a block is found at any depth, and only whole")
    func search() {
        let lines = ["func a() {", "    if b {", "        c()", "", "    }", "}"].map { Substring($0) }
        #expect(contains("if b {\n    c()\n\n}", in: lines))
        #expect(!contains("if b {\nc()\n\n}", in: lines))
        #expect(!contains("if b {\n    c()\n}", in: lines))
        #expect(!contains("d()", in: lines))
    }

    private static func pagesWithCode() throws -> [String] {
        try Document.all().filter { !$0.blocks("swift").isEmpty }.map(\.path)
    }

    private func expect(_ blocks: [String], in file: String, of page: String) throws {
        if blocks.isEmpty { return }
        let path = Document.packageDirectory + "/" + file
        let source = try #require(
            try? String(contentsOfFile: path, encoding: .utf8), "\(page) has code, but there is no \(file)")
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        for block in blocks {
            #expect(block.count { $0 == "{" } == block.count { $0 == "}" }, "\(page): a block is not whole:\n\(block)")
            let isImports = block.split(separator: "\n").allSatisfy { $0.hasPrefix("import ") }
            #expect(isImports || contains(block, in: lines), "\(page): not in \(file):\n\(block)")
        }
    }

    /// Whether the lines are there, one after the other, all with the same white space before them.
    private func contains(_ block: String, in lines: [Substring]) -> Bool {
        let code = block.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.dropLast(code.count - 1).contains { start in
            let indentation = lines[start].prefix { $0 == " " }
            return zip(code, lines[start...]).allSatisfy { shown, line in
                shown.isEmpty ? line.isEmpty : line == indentation + shown
            }
        }
    }
}

/// The constants that decide speed or fairness say what they are, and where they are from.
@Suite("Tuning", .leakCheck)
struct TuningTests {
    @Test(
        "a constant says what it is; it or its section names a decision, or says that it was chosen and not measured",
        arguments: ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "portctl"])
    func origins(target: String) throws {
        let decisions = Set(
            try FileManager.default.contentsOfDirectory(atPath: Document.packageDirectory + "/Docs/Decisions")
                .map { $0.prefix(4) })
        let path = Document.packageDirectory + "/Sources/" + target + "/Support/Tuning.swift"
        var (section, comment, count) = ("", "", 0)
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let code = line.drop { $0 == " " }
            if code.hasPrefix("// MARK: ") { section = String(code) }
            if code.hasPrefix("///") { comment += code.dropFirst(3) }
            if code.hasPrefix("static let ") {
                count += 1
                #expect(comment.split(separator: " ").count >= 2, "what is it? \(line)")
                let origin = section + comment
                let named = origin.matches(of: /\b[0-9]{4}\b/).map { origin[$0.range] }
                #expect(decisions.isSuperset(of: named), "no such decision: \(line)")
                #expect(!named.isEmpty || origin.contains("Chosen, not measured"), "where is it from? \(line)")
                #expect(named.isEmpty || !section.hasSuffix("measured."), "its section says otherwise: \(line)")
            }
            if !code.hasPrefix("//") { comment = "" }
        }
        #expect(count > 8)
    }
}

extension Document {
    /// The file's name, without what comes after the dot.
    var name: String { URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent }
}
