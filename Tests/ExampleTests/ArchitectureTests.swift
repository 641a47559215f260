// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The page about the architecture says what the sources are, and the folders of a target are floors.
@Suite("Architecture", .leakCheck)
struct ArchitectureTests {
    private static let page = "Docs/Architecture.md"

    /// From where to which floor arrows may go up: the page says why.
    private static let exceptions = [
        "MessagePort": ["Model/MachMessage.swift": "Rights"], "RunLoopCore": ["State/": "Items", "Items/": "Loop"],
        "FoundationPorts": ["Core/ProcessObjects.swift": "Foundation"],
    ]

    /// The floors of a target, from the bottom: the rows of the page's table.
    private static func floors(of target: String) throws -> [String] {
        let names = try Document(page).tableRows.filter { $0.count == 3 }.map { unquoted($0[0]) }
        return names.filter { $0.hasPrefix(target + "/") }.map { String($0.dropFirst(target.count + 1)) }
    }

    @Test(
        "a file names types of its own floor and of lower ones only",
        arguments: ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "FoundationPorts", "portctl"])
    func arrows(target: String) throws {
        let sources = try SourceTree(target)
        let floors = try Self.floors(of: target)
        #expect(Set(floors) == sources.folders, "each folder is a floor of the page, and each floor a folder")
        let exceptions = Self.exceptions[target] ?? [:]
        let upward = sources.upwardArrows(floors)
        func isAllowed(_ arrow: Arrow) -> Bool {
            exceptions.contains { arrow.file.hasPrefix($0.key) && arrow.floor == $0.value }
        }
        #expect(upward.allSatisfy(isAllowed), "\(upward.filter { !isAllowed($0) })")
        let pairs = Set(upward.map { [$0.file.split(separator: "/").first.map(String.init) ?? "", $0.floor] })
        #expect(pairs.count == exceptions.count, "an exception that is not needed goes")
    }

    @Test("two floors that use each other are found, whatever is in comments and strings")
    func search() {
        let target = SourceTree(files: [
            "Low/A.swift": "struct A { var b: B }\n// C\nlet text = \"C\"", "High/B.swift": "struct B { var a: A }",
            "High/C.swift": "package final class C {}",
        ])
        #expect(target.upwardArrows(["Low", "High"]) == [Arrow(file: "Low/A.swift", type: "B", floor: "High")])
        #expect(target.upwardArrows(["High", "Low"]) == [Arrow(file: "High/B.swift", type: "A", floor: "Low")])
    }

    @Test("each file on the page is there, and has the type that is named beside it")
    func files() throws {
        let document = try Document(Self.page)
        var count = 0
        for row in document.tableRows {
            guard let index = row.firstIndex(where: { $0.hasSuffix(".swift`") }) else { continue }
            let path = "Sources/" + Self.unquoted(row[index].split(separator: " ").last.map(String.init) ?? "")
            guard let text = try? String(contentsOfFile: Document.packageDirectory + "/" + path, encoding: .utf8) else {
                Issue.record("\(path) is not there")
                continue
            }
            count += 1
            if row.count == 5 { #expect(text.contains(Self.unquoted(row[2])), "\(path): \(row[2])") }
        }
        #expect(count > 35)
    }

    @Test("each type and lock on the page is declared in the sources")
    func names() throws {
        let names = try ["MessagePort", "RunLoopCore", "PortSystem", "NamedPortServer"].map {
            try SourceTree($0).declared
        }
        let declared = names.reduce(into: Set()) { $0.formUnion($1) }
        let rows = try Document(Self.page).tableRows.filter { $0.count == 5 && $0[2].hasPrefix("`") }
        let locks = Set(try Document("Docs/LockOrder.md").tableRows.filter { $0.count == 5 }.map { $0[1] })
        for row in rows {
            #expect(declared.contains(Self.unquoted(row[2])), "\(row[2])")
            if row[4].hasPrefix("`") { #expect(locks.contains(row[4]), "\(row[4]) is no lock of LockOrder.md") }
        }
        #expect(rows.count > 25)
    }

    @Test("each type in the drawing of a port and its client is declared in the sources")
    func drawing() throws {
        let drawings = try Document(Self.page).fenced.map(\.contents).filter { $0.contains("SocketConnection") }
        let drawing = try #require(drawings.first)
        #expect(drawings.count == 1)
        let names = Set(drawing.matches(of: /\b[A-Z][a-z]+[A-Z]\w*/).map { String($0.0) })
        let declared = try SourceTree("MessagePort").declared
        #expect(names.subtracting(declared) == [])
        #expect(names.count > 12)
    }

    @Test("what a floor talks up through is a protocol of it that a higher floor adopts")
    func protocols() throws {
        var count = 0
        for row in try Document(Self.page).tableRows where row.count == 3 && !row[2].isEmpty && row[0].hasPrefix("`") {
            let path = Self.unquoted(row[0]).split(separator: "/").map(String.init)
            let sources = try SourceTree(path[0])
            let higher = try Self.floors(of: path[0]).drop { $0 != path[1] }.dropFirst()
            for name in row[2].split(separator: ",").map({ Self.unquoted($0.trimmingCharacters(in: .whitespaces)) }) {
                count += 1
                #expect(sources.protocols(in: path[1]).contains(name), "\(row[0]): \(name)")
                #expect(sources.adopts(name, in: Set(higher)), "no higher floor than \(row[0]) adopts \(name)")
            }
        }
        #expect(count >= 5)
    }

    private static func unquoted(_ text: String) -> String { text.replacing("`", with: "") }
}

/// A file that names a type of a floor above its own.
struct Arrow: Hashable {
    var file: String
    var type: String
    /// Where the type is.
    var floor: String
}

/// The sources of a target, by their paths within it, without comments and texts.
struct SourceTree {
    private var files: [String: String]
    /// Where each type that other files see is declared.
    private var declaringPaths: [String: String] = [:]
    /// The names of all types, nested and private ones too.
    private(set) var typeNames: Set<String> = []

    /// The trees of all targets that have Swift files: made once, since many tests read them.
    private static let all = Result {
        var files: [String: [String: String]] = [:]
        // `main.swift` is above the floors.
        for source in try Document.sources() where source.path.hasSuffix(".swift") {
            let parts = source.path.split(separator: "/", maxSplits: 2).map(String.init)
            if parts[2] == "main.swift" { continue }
            files[parts[1], default: [:]][parts[2]] = source.text
        }
        return files.mapValues { SourceTree(files: $0) }
    }

    /// The targets that have Swift files.
    static var targets: [String] { get throws { try all.get().keys.sorted() } }

    init(_ target: String) throws {
        self = try #require(Self.all.get()[target], "no target \(target)")
    }

    init(files: [String: String]) {
        self.files = files.mapValues(Self.code(of:))
        let words = ["struct", "class", "enum", "protocol", "actor", "typealias"]
        let name = /\b(?:struct|class|enum|protocol|actor|typealias)\s+([A-Z]\w*)/
        let declaration =
            /(?m)^(?:(?:public|package|final|indirect|internal|@\w+(?:\([^)]*\))?)\s+)*(?:struct|class|enum|protocol|actor|typealias)\s+(\w+)/
        for (path, text) in self.files {
            // A declaration's name is in the line of its keyword.
            for line in text.lines(withAnyOf: words) {
                for match in line.matches(of: declaration) { declaringPaths[String(match.1)] = path }
                typeNames.formUnion(line.matches(of: name).map { String($0.1) })
            }
        }
    }

    /// A file without its comments and imports, and with empty texts. None goes beyond its line.
    private static func code(of text: String) -> String {
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            let line = String(Substring(line))
            // A module may have the name of a type.
            if line.hasPrefix("import ") || line.contains(" import ") { return "" }
            guard line.contains(anyOf: ["//", "\""]) else { return line }
            return line.replacing(/\/\/[^\n]*/, with: "").replacing(/"(?:\\.|[^"\\\n])*"/, with: "\"\"")
        }
        return lines.joined(separator: "\n")
    }

    var declared: Set<String> { Set(declaringPaths.keys) }

    /// The protocols that the files of a folder declare.
    func protocols(in folder: String) -> Set<String> {
        let texts = files.filter { Self.folder($0.key) == folder }.values
        return Set(
            texts.flatMap { $0.lines(withAnyOf: ["protocol"]) }.flatMap { line in
                line.matches(of: /\bprotocol\s+(\w+)/).map { String($0.1) }
            })
    }

    /// Whether a type of one of these folders adopts the protocol.
    func adopts(_ name: String, in folders: Set<String>) -> Bool {
        let declaration = /\b(?:struct|class|enum|actor|extension)\s[^:{}]*:([^{}]*)\{/
        return files.contains { path, text in
            folders.contains(Self.folder(path)) && text.contains(anyOf: [name])
                && text.matches(of: declaration).contains { $0.1.split { !$0.isLetter }.contains { $0 == name } }
        }
    }

    var folders: Set<String> { Set(files.keys.map(Self.folder)) }

    private static func folder(_ path: String) -> String {
        path.split(separator: "/").dropLast().joined(separator: "/")
    }

    /// The files that name types of folders above their own. The folders are named from the bottom.
    func upwardArrows(_ floors: [String]) -> [Arrow] {
        func rank(_ path: String) -> Int { floors.firstIndex(of: Self.folder(path)) ?? -1 }
        return files.flatMap { path, text in
            Set(text.matches(of: /\b[A-Z]\w+|\b[A-Z]\b/).map { String($0.0) }).compactMap { type in
                declaringPaths[type].flatMap { declaringPath in
                    rank(declaringPath) > rank(path)
                        ? Arrow(file: path, type: type, floor: Self.folder(declaringPath)) : nil
                }
            }
        }.sorted { ($0.file, $0.type) < ($1.file, $1.type) }
    }
}
