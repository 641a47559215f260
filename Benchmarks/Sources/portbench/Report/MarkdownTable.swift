// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The results as a table of a page.
enum MarkdownTable {
    private static let head = ["Case", "Ports", "Baseline", "Ratio", "Goal", "Reached", "Others"]

    static func text(_ results: [CaseResult]) -> String {
        let rule = "|" + String(repeating: "---|", count: head.count)
        return ([line(head), rule] + results.map { line(cells($0)) }).joined(separator: "\n")
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
