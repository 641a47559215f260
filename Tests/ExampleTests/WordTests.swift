// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// Words that the style page has replaced stay away from sources and pages.
@Suite("Words", .census)
struct WordTests {
    private static let page = "Docs/Style.md"

    /// The page has the replacements. A stem ends with a hyphen.
    private static let words = [
        "in vain", "for want of", "such a one", "mend-", "stop to", "so often", "so long", "so many", "for ever",
        "who waits",
        "whoever", "somebody", "is told", "are told", "was told", "were told", "be told", "tells", "goes wrong", "lies",
        "held up", "sees to", "hears of", "upon", "seat-", "doze-", "burst-", "told", "lie there", "the news of",
    ]

    @Test("no source, script or page has a word that the style page replaces")
    func absent() throws {
        let pattern = try Regex(
            "\\b(?:"
                + Self.words.map { $0.hasSuffix("-") ? $0.dropLast() + "(?:s|ed|ing)?" : $0[...] }.joined(
                    separator: "|")
                + ")\\b"
        ).ignoresCase()
        var count = 0
        for path in try Self.paths() {
            let text = try String(contentsOfFile: Document.packageDirectory + "/" + path, encoding: .utf8)
            count += 1
            // A sentence may continue in the next line of a comment, of C or of a shell.
            let prose = text.replacing(/\n *(?:\/\/\/?|\*|#)? */, with: " ")
            for match in prose.matches(of: pattern) {
                let around = prose[match.range.lowerBound...].prefix(60)
                Issue.record("\(path): \(around)")
            }
        }
        #expect(count > 500)
    }

    @Test("the style page has each word, and twenty pairs")
    func pairs() throws {
        let rows = try Document(Self.page).tableRows.filter { $0.count == 2 && $0[0] != "Not" && $0[0] != "Before" }
        for word in Self.words {
            let stem = word.hasSuffix("-") ? String(word.dropLast()) : word
            #expect(rows.contains { $0[0].hasPrefix(stem) }, "\(word)")
        }
        #expect(rows.count - Self.words.count >= 20)
    }

    private static func paths() throws -> [String] {
        let own = [
            "Docs/Style.md", "Tests/ExampleTests/WordTests.swift", "Tests/ExampleTests/TypeWordTests.swift",
        ]
        var paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/run"]
        for folder in ["Sources", "Tests", "Docs", "Examples", "Benchmarks"] {
            let names = try FileManager.default.subpathsOfDirectory(
                atPath: Document.packageDirectory + "/" + folder)
            paths += names.filter { !$0.hasPrefix(".build/") }.map { folder + "/" + $0 }.filter(hasProse)
        }
        return paths.filter { !own.contains($0) }
    }

    /// Whether a file is a source, a page, the manual page or a script.
    private static func hasProse(_ path: String) -> Bool {
        if [".swift", ".md", ".c", ".h", ".1"].contains(where: path.hasSuffix) { return true }
        let name = path.split(separator: "/").last ?? ""
        let file = name.contains(".") ? nil : FileHandle(forReadingAtPath: Document.packageDirectory + "/" + path)
        return (try? file?.read(upToCount: 2)) == Data("#!".utf8)
    }
}
