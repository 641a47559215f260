// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The results as lines of text.
enum Table {
    static let head = line(["case", "unit", "median", "p50", "p99", "min", "max", "ratio", "baseline", "goal"])

    /// One line for the case, and one for each other contestant.
    static func lines(_ result: CaseResult) -> [String] {
        let goal =
            switch result.isReached {
            case nil: ""
            case true?: "reached"
            case false?:
                (result.reachedWords == "the ratio" ? "ratio reached, missed: " : "missed: ") + result.goalWords
            }
        let own = line(
            [result.title, result.unit]
                + [result.value, result.p50, result.p99, result.minimum, result.maximum].map(\.figure)
                + [result.ratio?.figure ?? "-", "\(result.baseline) \(result.baselineValue.figure)", goal])
        let others = result.peers.sorted { $0.key < $1.key }.map { name, value in
            line(["  \(name)", result.unit, value.figure])
        }
        return [own] + others + (result.note.map { ["  note: \($0)"] } ?? [])
    }

    private static func line(_ columns: [String]) -> String {
        line(columns, widths: [44, 11, 9, 9, 9, 9, 9, 8, 32, 0])
    }

    static func line(_ columns: [String], widths: [Int]) -> String {
        var text = zip(columns, widths).map { column, width in
            column.padding(toLength: max(width, column.count + 1), withPad: " ", startingAt: 0)
        }.joined()
        while text.last == " " { text.removeLast() }
        return text
    }
}
