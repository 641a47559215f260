// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Spreads as lines of text, and as a table of a page.
enum SpreadTable {
    static let head = line([
        "medians of the runs", "unit", "runs", "min", "median", "9 of 10", "worst", "ratio", "worst",
    ])

    /// One line for ours, then one for each contestant that it is compared with: the baseline is the first.
    static func lines(_ spread: Spread) -> [String] {
        let all = [(spread.title, spread.ours)] + ([spread.baseline] + spread.others).map { ("  \($0.name)", $0) }
        return all.map { title, medians in
            line(
                [title, spread.unit, "\(medians.values.count)"] + figures(medians)
                    + [medians.ratio, medians.worstRatio].map { $0?.figure ?? "" })
        }
    }

    /// The table of a page.
    static func markdown(_ spreads: [Spread]) -> String {
        let head = ["Case", "Runs", "Ports", "Baseline", "Ratio", "Worst ratio", "Others"]
        let rows = spreads.map { spread in
            [
                "`\(spread.case)`" + (spread.variant.map { ", \($0)" } ?? ""),
                "\(spread.ours.values.count)",
                "\(figures(spread.ours).joined(separator: " / ")) \(spread.unit)",
                "\(spread.baseline.name) \(figures(spread.baseline).joined(separator: " / "))",
                spread.baseline.ratio?.figure ?? "",
                spread.baseline.worstRatio?.figure ?? "",
                spread.others.map { "\($0.name) \(figures($0).joined(separator: " / "))" }.joined(separator: ", "),
            ]
        }
        return MarkdownTable.text(head, rows)
    }

    private static func figures(_ medians: Spread.Medians) -> [String] {
        [medians.minimum, medians.median, medians.nineOfTen, medians.worst].map(\.figure)
    }

    private static func line(_ columns: [String]) -> String {
        Table.line(columns, widths: [44, 11, 6, 9, 9, 9, 9, 9, 0])
    }
}
