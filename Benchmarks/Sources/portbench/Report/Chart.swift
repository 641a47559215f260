// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// A chart of the ratios to the baselines, on a logarithmic scale: to the left is better.
///
/// A group of bars for each row: ours, then the others that were measured with it. The line in the middle is the
/// baseline, and a mark shows the goal.
struct Chart {
    private static let width = 1000.0
    private static let plotLeft = 330.0
    private static let plotRight = 880.0
    private static let top = 84.0
    private static let barHeight = 11.0
    private static let groupGap = 13.0

    /// A bar: a name, and how many times the baseline.
    private struct Bar {
        let name: String
        let ratio: Double
        let isOurs: Bool
    }

    private let results: [CaseResult]
    /// The exponents of ten at the ends of the scale.
    private let low: Double
    private let high: Double

    init(_ results: [CaseResult]) {
        self.results = results.filter { $0.ratio != nil && $0.baselineValue > 0 }
        let ratios = self.results.flatMap { Self.bars($0).map(\.ratio) + [$0.goalRatio].compactMap(\.self) }
        let exponents = ratios.filter { $0 > 0 }.map { log10($0) }
        // Ratios further away are not worth a longer scale.
        low = max(-4, min(-1, (exponents.min() ?? -1).rounded(.down)))
        high = min(3, max(1, (exponents.max() ?? 1).rounded(.up)))
    }

    func write(to path: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    /// The chart as SVG.
    var text: String {
        var body: [String] = []
        var y = Self.top
        for result in results {
            let bars = Self.bars(result)
            body += group(result, bars, at: y)
            y += max(2, Double(bars.count)) * Self.barHeight + Self.groupGap
        }
        let height = y + 30
        return ([head(height)] + grid(to: y) + body + ["</svg>", ""]).joined(separator: "\n")
    }

    private static func bars(_ result: CaseResult) -> [Bar] {
        let ours = Bar(name: "ports", ratio: result.ratio ?? 0, isOurs: true)
        let others = result.peers.sorted { $0.key < $1.key }
        return [ours]
            + others.map { Bar(name: $0.key, ratio: $0.value / result.baselineValue, isOurs: false) }
    }

    private func x(_ ratio: Double) -> Double {
        let exponent = ratio > 0 ? min(high, max(low, log10(ratio))) : low
        return Self.plotLeft + (exponent - low) / (high - low) * (Self.plotRight - Self.plotLeft)
    }

    private func head(_ height: Double) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(height))" role="img" \
        font-family="system-ui, sans-serif" font-size="11">
        <title>Ratios to the baselines of the same run</title>
        <style>
        .page { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d0d7de }
        .base { stroke: #24292f } .ours { fill: #0969da } .other { fill: #afb8c1 } .goal { fill: #bc4c00 }
        @media (prefers-color-scheme: dark) {
        .page { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #30363d }
        .base { stroke: #e6edf3 } .ours { fill: #4493f8 } .other { fill: #545d68 } .goal { fill: #f0883e }
        }
        </style>
        <rect class="page" width="100%" height="100%"/>
        <text class="text" x="16" y="26" font-size="16" font-weight="600">Times the baseline, of the same run</text>
        <text class="soft" x="16" y="46">Logarithmic. Left of the line is faster or smaller than the baseline.</text>
        <rect class="ours" x="620" y="16" width="12" height="10"/><text class="soft" x="637" y="25">ports</text>
        <rect class="other" x="690" y="16" width="12" height="10"/><text class="soft" x="707" y="25">others</text>
        <path class="goal" d="M770 13 l5 8 l-5 8 l-5 -8 z"/><text class="soft" x="781" y="25">goal</text>
        """
    }

    private func grid(to bottom: Double) -> [String] {
        stride(from: low, through: high, by: 1).flatMap { exponent in
            let (position, ratio) = (x(pow(10, exponent)), pow(10, exponent))
            let label = exponent < 0 ? "1/\(Int((1 / ratio).rounded()))" : "\(Int(ratio))"
            return [
                "<line class=\"\(exponent == 0 ? "base" : "grid")\" x1=\"\(Int(position))\" x2=\"\(Int(position))\" "
                    + "y1=\"\(Int(Self.top) - 10)\" y2=\"\(Int(bottom))\"/>",
                "<text class=\"soft\" x=\"\(Int(position))\" y=\"\(Int(Self.top) - 15)\" text-anchor=\"middle\">\(label)</text>",
            ]
        }
    }

    private func group(_ result: CaseResult, _ bars: [Bar], at top: Double) -> [String] {
        var lines = [
            "<text class=\"text\" x=\"16\" y=\"\(top + 9)\" font-weight=\"600\">\(Self.escaped(result.title))</text>"
        ]
        lines.append("<text class=\"soft\" x=\"16\" y=\"\(top + 21)\">to \(Self.escaped(result.baseline))</text>")
        let goal = result.goalRatio.map(x)
        for (index, bar) in bars.enumerated() {
            let y = top + Double(index) * Self.barHeight
            let (start, end) = (min(x(1), x(bar.ratio)), max(x(1), x(bar.ratio)))
            lines.append(
                "<rect class=\"\(bar.isOurs ? "ours" : "other")\" x=\"\(Self.rounded(start))\" y=\"\(y)\" "
                    + "width=\"\(Self.rounded(max(1, end - start)))\" height=\"\(Self.barHeight - 2)\"/>")
            // Beside the mark of the goal, not under it.
            let isCovered = bar.isOurs && goal.map { $0 > end - 6 && $0 < end + 30 } ?? false
            let textStart = (isCovered ? max(end, goal ?? end) + 4 : end) + 5
            let text = "\(bar.ratio.figure)\(bar.isOurs ? "" : "  \(bar.name)")"
            lines.append(
                "<text class=\"\(bar.isOurs ? "text" : "soft")\" x=\"\(Self.rounded(textStart))\" y=\"\(y + 9)\" "
                    + "font-size=\"10\">\(Self.escaped(text))</text>")
        }
        if let goal {
            let (position, y) = (Self.rounded(goal), top - 3)
            lines.append("<path class=\"goal\" d=\"M\(position) \(y) l4 7.5 l-4 7.5 l-4 -7.5 z\"/>")
        }
        return lines
    }

    private static func rounded(_ value: Double) -> String { String(format: "%.1f", value) }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
