// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// A page of the documentation, in Markdown, for tests that compare it with the code.
package struct Document: Sendable {
    /// Its path from the package's directory.
    package let path: String
    /// All of it.
    package let text: String

    /// The package's directory, without a slash at its end.
    package static let packageDirectory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    /// Reads a page.
    ///
    /// - Parameter path: from the package's directory.
    /// - Throws: when there is no such page.
    package init(_ path: String) throws {
        self.path = path
        text = try String(contentsOfFile: Self.packageDirectory + "/" + path, encoding: .utf8)
    }

    /// Every page of the package.
    package static func all() throws -> [Document] { try pages.get() }

    /// Every source file of Swift and C, by its path.
    package static func sources() throws -> [Document] { try sourceFiles.get() }

    /// The comments of declarations of every source file of the libraries and of portctl, each file's as a page.
    package static func comments() throws -> [Document] { try sourceComments.get() }

    // Many tests read all of them: they are read once.
    private static let pages = Result { try readPages() }
    private static let sourceFiles = Result { try readSources() }
    private static let sourceComments = Result { try sources().filter { $0.path.hasSuffix(".swift") }.map(\.comments) }

    private static func readPages() throws -> [Document] {
        let top = try FileManager.default.contentsOfDirectory(atPath: packageDirectory)
        let below = try ["Docs", "Examples", "Sources"].flatMap { directory in
            try FileManager.default.subpathsOfDirectory(atPath: packageDirectory + "/" + directory)
                .map { directory + "/" + $0 }
        }
        return try (top + below).filter { $0.hasSuffix(".md") }.sorted().map { try Document($0) }
    }

    private static func readSources() throws -> [Document] {
        let files = try FileManager.default.subpathsOfDirectory(atPath: packageDirectory + "/Sources")
        return try files.filter { file in [".swift", ".c", ".h"].contains { file.hasSuffix($0) } }.sorted()
            .map { try Document("Sources/" + $0) }
    }

    /// The comments of a source file, each line where it is there.
    private var comments: Document {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let comment = line.drop { $0 == " " }
            return comment.hasPrefix("///") ? comment.dropFirst(comment.hasPrefix("/// ") ? 4 : 3) : ""
        }
        return Document(path: path, text: lines.joined(separator: "\n"))
    }

    /// The names of the tests in the source files of a folder below `Tests`.
    package static func testNames(
        in folder: String, where isIncluded: (String) -> Bool = { _ in true }
    ) throws -> [String] {
        let directory = "Tests/" + folder
        let files = try FileManager.default.contentsOfDirectory(atPath: packageDirectory + "/" + directory)
        return try files.filter { $0.hasSuffix(".swift") && isIncluded($0) }.flatMap { file in
            try Document(directory + "/" + file).text.matches(of: /@Test\(\s*"([^"]*)"/).map { String($0.1) }
        }
    }

    private init(path: String, text: String) {
        self.path = path
        self.text = text
    }

    /// The lines that are code in Markdown because of the four spaces before them.
    package var indentedCode: [Substring] {
        var (isCode, isInList, isAfterEmptyLine) = (false, false, true)
        return prose.filter { line in
            defer { isAfterEmptyLine = line.isEmpty }
            if line.isEmpty { return false }
            let isIndented = line.hasPrefix("    ")
            if !line.hasPrefix(" ") { isInList = line.prefixMatch(of: #/(?:[-*+]|[0-9]+\.) /#) != nil }
            isCode = isIndented && !isInList && (isCode || isAfterEmptyLine)
            return isCode
        }
    }

    /// The fenced blocks whose first line says this after the fence, each without the fences.
    package func blocks(_ information: String) -> [String] {
        fenced.filter { $0.information == information }.map(\.contents)
    }

    /// Every fenced block.
    package var fenced: [(information: String, contents: String)] {
        var blocks: [(information: String, contents: String)] = []
        var open: (information: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let block = open {
                if line == "```" {
                    blocks.append((block.information, block.lines.joined(separator: "\n")))
                    open = nil
                } else {
                    open?.lines.append(line)
                }
            } else if line.hasPrefix("```") {
                open = (String(line.dropFirst(3)), [])
            }
        }
        return blocks
    }

    /// The text without fenced blocks.
    package var prose: [Substring] {
        var isInBlock = false
        return text.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            if line.hasPrefix("```") {
                isInBlock.toggle()
                return false
            }
            return !isInBlock
        }
    }

    /// The rows of all tables, cell by cell, without the rules between head and body.
    package var tableRows: [[String]] {
        prose.filter { $0.hasPrefix("|") && $0.hasSuffix("|") && !$0.hasPrefix("|---") }.map { line in
            line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The headings in the form of links: in lower case, with hyphens for spaces.
    package var anchors: Set<String> {
        Set(
            prose.filter { $0.hasPrefix("#") }.map { line in
                line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
                    .filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }.replacing(" ", with: "-")
            })
    }

    /// The targets of its links.
    package var linkTargets: [String] {
        prose.joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) }
    }
}

extension String {
    /// Whether it has one of the texts, byte for byte. A test that reads all sources asks this first: a `Regex` takes
    /// many times as long.
    package func contains(anyOf texts: [String]) -> Bool {
        withCString { start in texts.contains { strstr(start, $0) != nil } }
    }

    /// Its lines that have one of the texts, for the same tests.
    package func lines(withAnyOf texts: [String]) -> [String] {
        guard contains(anyOf: texts) else { return [] }
        let lines = utf8.split(separator: UInt8(ascii: "\n")).map { String(Substring($0)) }
        return lines.filter { $0.contains(anyOf: texts) }
    }
}
