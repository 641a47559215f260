// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The results as lines of text.
enum Table {
    static let head = line(["case", "unit", "median", "p50", "p99", "min", "max", "ratio", "baseline", "goal"])

    /// One line, and one for each other that was measured with it.
    static func lines(_ result: CaseResult) -> [String] {
        let goal =
            switch result.isReached {
            case nil: ""
            case true?: "reached"
            case false?: "missed: " + words(result.goal, result.unit)
            }
        let own = line(
            [result.title, result.unit]
                + [result.value, result.p50, result.p99, result.minimum, result.maximum].map(number)
                + [result.ratio.map(number) ?? "-", "\(result.baseline) \(number(result.baselineValue))", goal])
        let others = result.peers.sorted { $0.key < $1.key }.map { name, value in
            line(["  \(name)", result.unit, number(value)])
        }
        return [own] + others + (result.note.map { ["  note: \($0)"] } ?? [])
    }

    /// Three digits that count.
    static func number(_ value: Double) -> String {
        switch abs(value) {
        case 0: "0"
        case ..<0.0995: String(format: "%.4f", value)
        case ..<9.95: String(format: "%.2f", value)
        case ..<99.5: String(format: "%.1f", value)
        default: String(format: "%.0f", value)
        }
    }

    private static func words(_ goal: Goal, _ unit: String) -> String {
        [goal.value.map { "\(number($0)) \(unit)" }, goal.ratio.map { "ratio \(number($0))" }].compactMap(\.self)
            .joined(separator: ", ")
    }

    private static func line(_ columns: [String]) -> String {
        let widths = [44, 11, 9, 9, 9, 9, 9, 8, 32, 0]
        var text = zip(columns, widths).map { column, width in
            column.padding(toLength: max(width, column.count + 1), withPad: " ", startingAt: 0)
        }.joined()
        while text.last == " " { text.removeLast() }
        return text
    }
}
