// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The guide for programs of a Mac names what is there, and all of it.
@Suite("FoundationPorts: the guide")
struct DocumentationTests {
    private static let page = "Sources/FoundationPorts/FoundationPorts.docc/BringYourMacProgram.md"

    /// The table of what there is: Apple's symbols, what differs here, and why.
    private static func rows() throws -> [[String]] {
        try Document(page).tableRows.filter { $0.count == 3 && $0[0].hasPrefix("`") }
    }

    /// The spans of code in its first column.
    private static func symbols() throws -> [String] {
        try rows().flatMap { row in row[0].matches(of: /`([^`]+)`/).map { String($0.1) } }
    }

    private static func sources() throws -> String {
        try Document.sources().filter { $0.path.hasPrefix("Sources/FoundationPorts/") }.map(\.text).joined()
    }

    @Test("each symbol of the table is declared by the module, or exported by it")
    func there() throws {
        let sources = try Self.sources()
        let symbols = try Self.symbols().filter { !$0.hasSuffix(".h") }
        #expect(symbols.count > 40)
        for symbol in symbols {
            let parts = symbol.split(separator: "(", maxSplits: 1)
            let keyword = #"\b(?:func|class|struct|typealias|protocol|let|var|extension) (?:CoreFoundation\.)?"#
            let pattern =
                parts.count == 2
                ? "\\b\(parts[0])\\(\(parts[1].prefix { $0 != ":" }) " : keyword + "\(symbol)\\b"
            #expect(try sources.contains(Regex(pattern)), "\(symbol)")
        }
    }

    @Test("the table has each function, constant and type of the module")
    func complete() throws {
        let sources = try Self.sources()
        let symbols = Set(try Self.symbols())
        let declared = sources.matches(of: /\b(?:func|var) (?:CoreFoundation\.)?(k?CF(?:MessagePort|Data)[A-Za-z]+)/)
            .map { String($0.1) }
        #expect(Set(declared).count > 20)
        let types = sources.matches(of: /\n(?:@frozen\n)?(?:public|open) (?:class|struct|protocol|typealias|let) (\w+)/)
            .map { String($0.1) }
        #expect(types.contains("NSMachPort") && types.contains("KERN_SUCCESS"))
        for name in Set(declared + types) { #expect(symbols.contains(name), "\(name)") }
    }

    @Test("each row of the table that has a difference has its reason, and no other one")
    func reasons() throws {
        let rows = try Self.rows()
        #expect(rows.count > 15)
        for row in rows { #expect((row[1] == "None") == row[2].isEmpty, "\(row)") }
    }

    @Test("the product, the header and the examples that the guide names are there")
    func files() throws {
        let text = try Document(Self.page).text
        let manifest = try Document("Package.swift").text
        for product in text.matches(of: /--product (\w+)/).map(\.1) {
            #expect(manifest.contains("name: \"\(product)\""), "\(product)")
        }
        for path in text.matches(of: /`(Sources\/[^`]+)`/).map(\.1) {
            #expect(FileManager.default.fileExists(atPath: Document.packageDirectory + "/" + path), "\(path)")
        }
        for example in ["foundation-mixed", "listing-3-12-foundation", "listing-3-17-foundation"] {
            #expect(text.contains("`\(example)`"))
            #expect(manifest.contains("\"\(example)\": \""))
        }
    }

    @Test("the header for C declares what CoreFoundation's lacks, and does not change what it has")
    func header() throws {
        let header = try Document("Sources/CFoundationPorts/client/FoundationPorts.h").text
        let functions = header.matches(of: /\nextern .*?(\w+)\(/).map { String($0.1) }
        #expect(functions == ["CFMessagePortSetDispatchQueue"])
    }
}
