// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The results as a table of a page.
enum MarkdownTable {
    private static let head = ["Case", "Ports", "Baseline", "Ratio", "Goal", "Reached", "Others"]

    /// What a row of such a table says, with the digits that it shows.
    struct Row {
        /// The first cell.
        let title: String
        let unit: String
        let value: Double
        /// The baseline, then the others.
        let others: [(name: String, value: Double)]
    }

    /// The rows of the tables in some lines of a page.
    static func rows(_ lines: [String]) -> [Row] {
        lines.filter { $0.hasPrefix("| `") }.compactMap { line in
            let cells = line.components(separatedBy: " | ")
            guard cells.count == head.count, let space = cells[1].firstIndex(of: " "),
                let value = number(cells[1][..<space])
            else { return nil }
            let others = [cells[2], cells[6]].flatMap { cell in
                // A name may have commas and digits: the number before a comma, or the end, is the value.
                cell.matches(of: /(.+?) ([0-9.]+(?:,[0-9]{3})*(?:e-?[0-9]+)?)(?:, | \||$)/).compactMap { match in
                    number(match.2).map { (name: String(match.1), value: $0) }
                }
            }
            let unit = String(cells[1][space...].dropFirst())
            return Row(title: String(cells[0].dropFirst(2)), unit: unit, value: value, others: others)
        }
    }

    /// The rows of the table of some results.
    static func rows(of results: [CaseResult]) -> [Row] { rows(text(results).components(separatedBy: "\n")) }

    private static func number(_ figure: Substring) -> Double? { Double(figure.replacing(",", with: "")) }

    static func text(_ results: [CaseResult]) -> String { text(head, results.map(cells)) }

    static func text(_ head: [String], _ rows: [[String]]) -> String {
        let rule = "|" + String(repeating: "---|", count: head.count)
        return ([line(head), rule] + rows.map(line)).joined(separator: "\n")
    }

    private static func cells(_ result: CaseResult) -> [String] {
        let others = result.peers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.figure)" }
        return [
            "`\(result.case)`" + (result.variant.map { ", \($0)" } ?? ""),
            "\(result.value.figure) \(result.unit)",
            "\(result.baseline) \(result.baselineValue.figure)",
            result.ratio?.figure ?? "",
            result.goalWords,
            result.reachedWords,
            others.joined(separator: ", "),
        ]
    }

    private static func line(_ cells: [String]) -> String { "| \(cells.joined(separator: " | ")) |" }
}
