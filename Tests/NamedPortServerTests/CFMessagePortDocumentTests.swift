// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import TestSupport
import Testing

@Suite(.leakCheck) struct CFMessagePortDocumentTests {
    private static let page = "Docs/CFMessagePort.md"

    private static func rows(_ letter: String) throws -> [[String]] {
        try Document(page).tableRows.filter { $0[0].first.map(String.init) == letter && Int($0[0].dropFirst()) != nil }
    }

    @Test("the page has each assumption once, and a test that begins with its number")
    func assumptions() throws {
        let rows = try Self.rows("A")
        #expect(rows.map { $0[0] } == (1...32).map { "A\($0)" })
        let tested = Set(try Self.testNames().flatMap { Self.numbers("A", in: String($0.prefix { $0 != ":" })) })
        #expect(tested.subtracting(rows.map { $0[0] }) == [])
        #expect(rows.map { $0[0] }.filter { !tested.contains($0) } == [])
    }

    @Test("the page has each difference once, and says where it matters")
    func differences() throws {
        let ids = try Self.rows("M").map { $0[0] }
        #expect(ids == (1...ids.count).map { "M\($0)" })
        let functions = try Document(Self.page).tableRows.filter { $0[0].hasPrefix("`") && $0.count == 3 }
        let used = (try Self.rows("A") + functions).flatMap { Self.numbers("M", in: $0[2]) }
        #expect(Set(used) == Set(ids))
    }

    @Test("each function of CFMessagePort has its row, and its counterpart here is declared")
    func functions() throws {
        let functions = [
            "GetTypeID", "CreateLocal", "CreateRemote", "IsRemote", "GetName", "SetName", "GetContext", "Invalidate",
            "IsValid", "GetInvalidationCallBack", "SetInvalidationCallBack", "SendRequest", "CreateRunLoopSource",
            "SetDispatchQueue",
        ]
        let rows = try Document(Self.page).tableRows.filter { $0[0].hasPrefix("`CFMessagePort") }
        #expect(rows.map { $0[0] }.prefix(functions.count) == functions.map { "`CFMessagePort\($0)`" }[...])
        let text = try Document(Self.page).text
        var declared = 0
        for match in text.matches(of: /`(LocalMessagePort|RemoteMessagePort|MachMessage|PortNameServer)\.([A-Za-z]+)`/)
        {
            let sources = try Self.sources(of: String(match.1))
            let member = match.2 == "init" ? "init" : "(?:func|var|let|typealias) \(match.2)"
            #expect(sources.contains(try Regex("public [a-z ]*\(member)\\b")), "\(match.0)")
            declared += 1
        }
        #expect(declared > 20)
    }

    @Test("the status codes are those of the code, here and in the table of errors")
    func status() throws {
        var known: [String: Int32] = [:]
        for row in try Document(Self.page).tableRows where row[0].hasPrefix("`kCFMessagePort") {
            for match in row[2].matches(of: /`(\w+)`/) { known[String(match.1)] = Int32(row[1]) }
        }
        #expect(known.count == 5)
        for code in PortError.Code.all { #expect(PortError(code).cfStatus == known[code.description] ?? -4, "\(code)") }
        let errors = try Document("Docs/Errors.md").tableRows.filter { Int($0[0]) != nil }
        for row in errors {
            let shown = row[5].split(separator: ", ").compactMap { Int32($0) }
            let code = try #require(PortError.Code.all.first { "`\($0)`" == row[1] })
            #expect(shown.isEmpty ? PortError(code).cfStatus == -4 : shown == [PortError(code).cfStatus], "\(code)")
        }
    }

    /// The numbers after the letter, at each occurrence: "A1, A16" gives both.
    private static func numbers(_ letter: Character, in text: String) -> [String] {
        text.matches(of: /\b([AM])(\d+)\b/).filter { $0.1.first == letter }.map { String($0.0) }
    }

    private static func testNames() throws -> [String] {
        try Document.testNames(in: "NamedPortServerTests") { $0.hasPrefix("Assumptions") }.filter { $0.contains(":") }
    }

    private static func sources(of type: String) throws -> String {
        let sources = Document.packageDirectory + "/Sources"
        let files = try FileManager.default.subpathsOfDirectory(atPath: sources)
        return try files.filter { ($0 as NSString).lastPathComponent.hasPrefix(type) }.map {
            try String(contentsOfFile: sources + "/" + $0, encoding: .utf8)
        }.joined()
    }
}
