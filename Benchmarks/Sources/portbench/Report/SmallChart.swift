// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The chart of the README: what a message and its answer cost, a bar for each contestant, on a linear scale.
///
/// It is drawn from a table of a page, so that it shows what the page says, also long after the run.
struct SmallChart {
    private static let width = 760.0
    private static let barLeft = 200.0
    private static let barRight = 670.0
    private static let top = 88.0
    private static let barHeight = 15.0
    private static let rowHeight = 23.0
    private static let panelGap = 40.0

    /// The cases, and what their contestants are called here. Others are left to the full chart.
    private static let panels = [
        (
            title: "Between two threads", case: "inproc.roundtrip.busy",
            names: [
                "Dispatch async": "Dispatch", "AsyncStream": "AsyncStream",
                "bare eventfd + epoll": "bare eventfd, epoll",
                "CFRunLoop source1": "CFRunLoop", "ZeroMQ inproc": "ZeroMQ", "nng inproc": "nng",
            ]
        ),
        (
            title: "Between two processes", case: "ipc.roundtrip.busy",
            names: [
                "bare stream socket": "bare stream socket", "bare SEQPACKET + epoll": "bare SEQPACKET socket",
                "ZeroMQ ipc": "ZeroMQ", "nng ipc": "nng",
            ]
        ),
    ]

    private struct Bar {
        let name: String
        let value: Double
        let isOurs: Bool
    }

    private let panels: [(title: String, unit: String, bars: [Bar])]

    /// - Throws: when the table does not have a row for each of the cases.
    init(_ rows: [MarkdownTable.Row]) throws {
        panels = try Self.panels.map { panel in
            guard let row = rows.first(where: { $0.title == "`\(panel.case)`" }) else {
                throw BenchmarkFailure("the small chart needs \(panel.case): give --small-svg results that have it")
            }
            let others = row.others.compactMap { other in
                panel.names[other.name].map { Bar(name: $0, value: other.value, isOurs: false) }
            }
            let bars = [Bar(name: "swift-message-port", value: row.value, isOurs: true)] + others
            return (panel.title, row.unit, bars.sorted { $0.value < $1.value })
        }
    }

    func write(to path: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    /// The chart as SVG.
    private var text: String {
        let longest = panels.flatMap(\.bars).map(\.value).max() ?? 1
        var body: [String] = []
        var y = Self.top
        for panel in panels {
            body.append("<text class=\"text\" x=\"24\" y=\"\(y)\" font-weight=\"600\">\(panel.title)</text>")
            let first = y + 12
            for (index, bar) in panel.bars.enumerated() {
                let width = max(1, bar.value / longest * (Self.barRight - Self.barLeft))
                body += row(bar, panel.unit, at: first + Double(index) * Self.rowHeight, width: width)
            }
            y = first + Double(panel.bars.count) * Self.rowHeight
            body.append(
                "<line class=\"grid\" x1=\"\(Self.barLeft)\" x2=\"\(Self.barLeft)\" y1=\"\(first - 4)\" y2=\"\(y - 4)\"/>"
            )
            y += Self.panelGap
        }
        let height = y - Self.panelGap + 20
        return ([head(height)] + body + ["</svg>", ""]).joined(separator: "\n")
    }

    private func row(_ bar: Bar, _ unit: String, at y: Double, width: Double) -> [String] {
        let style = bar.isOurs ? "class=\"text\" font-weight=\"600\"" : "class=\"soft\""
        let (line, end) = (y + Self.barHeight - 3.5, String(format: "%.1f", Self.barLeft + width + 7))
        return [
            "<text \(style) x=\"\(Self.barLeft - 10)\" y=\"\(line)\" text-anchor=\"end\">\(bar.name)</text>",
            "<rect class=\"\(bar.isOurs ? "ours" : "other")\" x=\"\(Self.barLeft)\" y=\"\(y)\" "
                + "width=\"\(String(format: "%.1f", width))\" height=\"\(Self.barHeight)\"/>",
            "<text \(style) x=\"\(end)\" y=\"\(line)\">\(bar.value.figure) \(unit)</text>",
        ]
    }

    private func head(_ height: Double) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(height))" role="img" \
        font-family="system-ui, sans-serif" font-size="13">
        <title>What a message and its answer cost</title>
        <style>
        .page { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d0d7de }
        .ours { fill: #0969da } .other { fill: #afb8c1 }
        @media (prefers-color-scheme: dark) {
        .page { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #30363d }
        .ours { fill: #4493f8 } .other { fill: #545d68 }
        }
        </style>
        <rect class="page" width="100%" height="100%"/>
        <text class="text" x="24" y="34" font-size="17" font-weight="600">What a message and its answer cost</text>
        <text class="soft" x="24" y="55">64 bytes there and 64 back, with both sides busy. Shorter is better.</text>
        """
    }
}
