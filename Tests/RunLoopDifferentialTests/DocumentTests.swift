// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

@Suite(.leakCheck) struct DifferenceDocumentTests {
    @Test("the table of differences has a row for each known difference, and no other, each once")
    func differences() throws {
        let rows = try Document("Docs/RunLoopOrder.md").tableRows.map { $0[0] }.filter {
            $0.wholeMatch(of: /D\d+/) != nil
        }
        #expect(rows == (1...rows.count).map { "D\($0)" })
        #expect(Set(rows) == Set(KnownDifference.all.map(\.id)))
    }

    @Test("the page about CFRunLoop has each behaviour once, with the rows that apply")
    func behaviours() throws {
        let rows = try Document("Docs/CFRunLoop.md").tableRows.filter { Int($0[0]) != nil }
        #expect(rows.compactMap { Int($0[0]) } == Array(1...42))
        for row in rows {
            let ids = row[2] == "equal" ? [] : row[2].components(separatedBy: ", ")
            #expect(Int(row[0]).flatMap { Behaviour.differences[$0] } == ids, "behaviour \(row[0])")
        }
    }

    @Test("each behaviour has a test that begins with its number, each difference one that names it")
    func testNames() throws {
        let names = try Document.testNames(in: "RunLoopDifferentialTests")
        for (number, ids) in Behaviour.differences {
            let tests = names.filter { $0.contains(/\bCF \b/) && Self.numbers($0).contains(number) }
            #expect(!tests.isEmpty, "no test of CF \(number)")
            for id in ids { #expect(tests.contains { Self.ids($0).contains(id) }, "no test of CF \(number), \(id)") }
            if ids.isEmpty { #expect(tests.allSatisfy { Self.ids($0).isEmpty }, "CF \(number) should be equal") }
        }
        for id in Set(KnownDifference.all.map(\.id)) {
            #expect(names.contains { Self.ids($0).contains(id) }, "no test of \(id)")
        }
    }

    /// What comes before the colon.
    private static func numbers(_ name: String) -> [Int] {
        name.prefix { $0 != ":" }.matches(of: /CF (\d+)/).compactMap { Int($0.1) }
    }

    private static func ids(_ name: String) -> [String] {
        name.prefix { $0 != ":" }.matches(of: /D\d+/).map { String($0.0) }
    }
}
