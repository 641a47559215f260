// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

/// The names of types consist of words of the glossary, and of common words of the field, each with a source.
@Suite("Words of type names", .leakCheck)
struct TypeWordTests {
    private static let page = "Docs/TypeWords.md"
    private static let limit = 300

    /// Words that have been replaced: they have several meanings, or none outside of this package.
    private static let replaced: Set = [
        "awake", "bell", "blankable", "burst", "claim", "clip", "crowd", "crowded", "deaf", "doze", "dozed", "dozing",
        "follower", "front", "gate", "giver", "home", "kept", "lane", "ledger", "leftover", "lone", "look", "looking",
        "lookout", "loose", "overdue", "owe", "patience", "place", "post", "rare", "rarity", "remains", "rung", "seat",
        "sequel", "silence", "spare", "tally", "tell", "telling", "ticket", "told", "turn", "under", "untold", "vain",
        "way", "wish", "withdrawal",
    ]

    /// Names that have a replaced word, and why.
    private static let exceptions = ["RunLoopTurnHook": "public, and the glossary says what a turn hook is"]

    @Test("every part of a type's name is in the glossary or on the list")
    func known() throws {
        let names = try Self.typeNames()
        #expect(names.count > 300)
        let words = try Self.glossary().union(Self.list().map { $0.word.lowercased() })
        for (part, names) in Self.unknownParts(of: names, words) {
            Issue.record("\(part), in \(names.joined(separator: ", ")), is neither in the glossary nor in \(Self.page)")
        }
    }

    @Test("the list has at most 300 words, in alphabetical order, each once and with its source")
    func form() throws {
        let list = try Self.list()
        #expect(list.count > 100 && list.count <= Self.limit)
        let words = list.map { $0.word.lowercased() }
        #expect(words == words.sorted())
        #expect(Set(words).count == words.count)
        for (word, source) in list {
            #expect(Self.parts(of: word) == [word], "\(word) is one word")
            #expect(source.count >= 5, "\(word) has a source")
        }
    }

    @Test("no word of the list is one that has been replaced, or that the style page replaces")
    func absent() throws {
        let table = try Document("Docs/Style.md").tableRows.prefix { $0[0] != "Before" }
        #expect(table.first?.first == "Not")
        let phrases = table.dropFirst().map { $0[0].lowercased() }
        #expect(phrases.count >= 5)
        let unwanted = Self.replaced.union(phrases.flatMap { $0.matches(of: /[a-z]+/).map { String($0.0) } })
        for (word, _) in try Self.list() { #expect(Self.forms(of: word).isDisjoint(with: unwanted), "\(word)") }
    }

    @Test("no type's name has a word that has been replaced, except for public names that are listed")
    func dialect() throws {
        let found = try Self.typeNames().filter { name in
            Self.parts(of: name).contains { !Self.forms(of: $0).isDisjoint(with: Self.replaced) }
        }
        #expect(found.subtracting(Self.exceptions.keys) == [])
        #expect(Set(Self.exceptions.keys).subtracting(found) == [], "an exception that nobody needs goes")
    }

    @Test("a word that no type's name uses any more goes from the list")
    func used() throws {
        let used = Set(try Self.typeNames().flatMap(Self.parts).flatMap(Self.forms))
        let unused = try Self.list().map(\.word).filter { !used.contains($0.lowercased()) }
        #expect(unused == [])
    }

    @Test("an unknown word is found, in a nested type too, whatever is in comments and strings")
    func search() {
        let source = """
            public final class PortQueues { private enum DozePolicies {} }
            // class Comment
            let text = "struct Text"
            class func make() -> IOThread
            typealias IOThread = Port
            """
        let names = SourceTree(files: ["A.swift": source]).typeNames
        #expect(names == ["PortQueues", "DozePolicies", "IOThread"])
        let unknown = Self.unknownParts(of: names, ["port", "queue", "policy", "io"])
        #expect(unknown == ["Doze": ["DozePolicies"], "Thread": ["IOThread"]])
        #expect(Self.parts(of: "Base64URL") == ["Base", "URL"])
    }

    /// The names of the types of all targets.
    private static func typeNames() throws -> Set<String> {
        try SourceTree.targets.reduce(into: []) { names, target in names.formUnion(try SourceTree(target).typeNames) }
    }

    /// The list: each word, and where it is used.
    private static func list() throws -> [(word: String, source: String)] {
        try Document(page).tableRows.filter { $0.count == 2 }.dropFirst().map { ($0[0], $0[1]) }
    }

    /// The words of the glossary's entries, and of the identifiers on the page.
    private static func glossary() throws -> Set<String> {
        let document = try Document("Docs/Glossary.md")
        let entries = document.tableRows.map { $0[0].lowercased() }.filter { $0 != "word" }
        let identifiers = document.text.matches(of: /`([^`\n]+)`/).map { String($0.1) }
        let words = entries.flatMap { $0.matches(of: /[a-z]+/).map { String($0.0) } }
        #expect(words.count > 100)
        return Set(words + identifiers.flatMap { parts(of: $0).map { $0.lowercased() } })
    }

    /// The parts of a name, without its digits. Capitals in a row are one part, such as `IO` of `IOThread`.
    private static func parts(of name: String) -> [String] {
        name.matches(of: /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/).map { String($0.0) }
    }

    /// What an entry for a part may be: the part, or its singular.
    private static func forms(of part: String) -> Set<String> {
        let part = part.lowercased()
        var forms: Set = [part]
        if part.hasSuffix("s") { forms.insert(String(part.dropLast())) }
        if part.hasSuffix("es") { forms.insert(String(part.dropLast(2))) }
        if part.hasSuffix("ies") { forms.insert(part.dropLast(3) + "y") }
        return forms
    }

    /// The parts that are none of the words, with the names that have them.
    private static func unknownParts(of names: Set<String>, _ words: Set<String>) -> [String: [String]] {
        var unknown: [String: [String]] = [:]
        for name in names.sorted() {
            for part in parts(of: name) where forms(of: part).isDisjoint(with: words) {
                unknown[part, default: []].append(name)
            }
        }
        return unknown
    }
}
