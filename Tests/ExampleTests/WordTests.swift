// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// Words that the style page has replaced stay away from sources and pages.
@Suite("Words", .leakCheck)
struct WordTests {
    private static let page = "Docs/Style.md"

    /// The page has the replacements. A stem ends with a hyphen. "Who" is right after a word for people.
    private static let words = [
        "in vain", "for want of", "such a one", "mend-", "stop to", "so often", "so long", "so many", "for ever",
        "who", "whoever", "look- (?:at|for|into|whether|again)", "somebody", "is told", "are told", "was told",
        "were told", "be told", "tells", "goes wrong", "lies", "held up", "sees to", "hears of", "upon", "seat-",
        "doze-", "burst-", "told", "lie there", "the news of",
    ]

    @Test("no source, script or page has a word that the style page replaces")
    func absent() throws {
        let search = try WordSearch(Self.words)
        let probe =
            "/// Not so\n    /// Often: it BURSTED.\n# for\n#   ever. It replies, (mending) retold seats, **tells**"
            + " a port who may: it looked\n// at all. Looks for: looking again. Whoever, Who, a superuser who"
        let found = search.found(in: probe).map { $0.prefix(5) }
        #expect(
            Set(found) == [
                "so of", "burst", "for e", "mendi", "seats", "tells", "who m", "looke", "looks", "looki", "whoev",
                "who, ", "who",
            ])
        let others = "replies, retold, seatbelts, dozen, whoeverelse, whole, whose, a user who may, Users\n/// who"
        #expect(search.found(in: others + " look up, looks it up, looking like, overlook at, look-up for") == [])
        var count = 0
        for path in try Self.paths() {
            count += 1
            for around in search.found(in: try Document(path).text) { Issue.record("\(path): \(around)") }
        }
        #expect(count > 500)
    }

    @Test("the style page has each word, and twenty pairs")
    func pairs() throws {
        let rows = try Document(Self.page).tableRows.filter { $0.count == 2 && $0[0] != "Not" && $0[0] != "Before" }
        for word in Self.words {
            let stem = word.prefix { $0 != "-" }
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

/// Finds words in prose: by a plain search, and by the exact rule only where that found one, since a `Regex` takes many
/// times as long.
private struct WordSearch {
    /// Each word: its stem, its exact rule, and how many words the rule wants after the stem.
    private let words: [(stem: String, rule: Regex<AnyRegexOutput>, following: Int)]

    // A stem ends with a hyphen, or is the whole of a word.
    init(_ words: [String]) throws {
        self.words = try words.map { word in
            let stem = word.prefix { $0 != "-" }
            let rest = word.dropFirst(stem.count).replacing("-", with: "(?:s|ed|ing)?")
            return (
                String(stem), try Regex("\\b\(stem)\(rest)\\b").ignoresCase(), rest.count(where: { $0 == " " })
            )
        }
    }

    /// The words in a text, each with what follows it, in lower case.
    func found(in text: String) -> [String] {
        Self.prose(of: text).lowercased().withCString { start in
            var found: [String] = []
            for (stem, rule, following) in words {
                var rest = UnsafePointer(start)
                while let place = strstr(rest, stem) {
                    rest = UnsafePointer(place + 1)
                    // What is around it, between spaces, decides whether it is a word.
                    var first = UnsafePointer(place)
                    while first > start, first[-1] != CChar(bitPattern: UInt8(ascii: " ")) { first -= 1 }
                    var end = UnsafePointer(place) + stem.utf8.count
                    end += strcspn(end, " ")
                    for _ in 0..<following where end.pointee != 0 { end += 1 + strcspn(end + 1, " ") }
                    guard Self.string(first, end).contains(rule) else { continue }
                    if stem == "who", Self.isAfterPeople(first, in: start) { continue }
                    found.append(Self.string(place, place + strnlen(place, 60)))
                }
            }
            return found
        }
    }

    /// Whether the word before a position is one for people.
    private static func isAfterPeople(_ position: UnsafePointer<CChar>, in start: UnsafePointer<CChar>) -> Bool {
        string(position - min(position - start, 8), position).contains(/\b(?:users?|people) $/)
    }

    /// The text in one line: a sentence may continue in the next line of a comment, of C or of a shell.
    private static func prose(of text: String) -> String {
        text.withCString { start in
            var (prose, rest) = ("", UnsafePointer(start))
            while true {
                let end = rest + strcspn(rest, "\n")
                prose += string(rest, end)
                if end.pointee == 0 { return prose }
                prose += " "
                rest = end + 1
                rest += strspn(rest, " ")
                let signs = ["///", "//", "*", "#"]
                rest += signs.first { (sign: String) in strncmp(rest, sign, sign.utf8.count) == 0 }?.utf8.count ?? 0
                rest += strspn(rest, " ")
            }
        }
    }

    private static func string(_ start: UnsafePointer<CChar>, _ end: UnsafePointer<CChar>) -> String {
        String(decoding: UnsafeRawBufferPointer(start: start, count: end - start), as: UTF8.self)
    }
}
