// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// Docs/RunLoopOrder.md numbers the steps of a run; the code says at each step which it is.
@Suite(.leakCheck) struct OrderDocumentTests {
    /// The rows of the page's table of steps.
    private func rows() throws -> [[String]] {
        try Document("Docs/RunLoopOrder.md").tableRows.filter { $0.count == 3 && Int($0[0]) != nil }
    }

    /// The lines of the code that end with a step's number.
    private func lines() throws -> [(step: Int, text: Substring)] {
        let path = Document.packageDirectory + "/Sources/RunLoopCore/Loop/ThreadRunLoop+Run.swift"
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap { line in
            line.firstMatch(of: /\s\s\/\/ (\d+)$/).flatMap { Int($0.1) }.map { ($0, line) }
        }
    }

    @Test("the page has the steps 1 to 10 in order; so has the code, each once, a pass's apart from the run's")
    func steps() throws {
        #expect(try rows().map { Int($0[0]) } == (1...10).map { $0 })
        #expect(try lines().map(\.step) == [1, 10] + Array(2...9))
    }

    @Test("at each step the code reports to observers the activity that the page names, or none")
    func activities() throws {
        let lines = try lines()
        for row in try rows() {
            let line = lines.first { "\($0.step)" == row[0] }?.text
            let notified = line?.firstMatch(of: /notify\(\.(\w+),/).map { String($0.1) }
            let named = row[2].firstMatch(of: /`(\w+)`/).map { String($0.1) }
            #expect(notified == named, "step \(row[0])")
        }
    }
}
