// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Rows under titles, in columns that fit. Makes the lines, and writes nothing.
struct Table {
    struct Column {
        let title: String
        /// Whether the column is aligned to the right, as numbers are.
        var isRight = false
        /// The least width where there is little room; nil when the column cannot become narrower.
        var narrowest: Int?
        /// The width to which it shrinks before other columns are removed.
        var comfortable: Int?
        /// Columns with a higher number are removed first where there is still too little room.
        var expendability = 0
    }

    var columns: [Column]
    var rows: [[String]] = []

    private static let gap = 2

    /// The lines; the first has the titles.
    ///
    /// - Parameter width: how many cells a line may have; nil for no limit.
    /// - Returns: the lines, without their ends.
    func lines(width: Int? = nil) -> [String] {
        let all = [columns.map(\.title)] + rows
        var widths = columns.indices.map { index in all.map { $0[index].cells }.max() ?? 0 }
        var shown = Array(columns.indices)
        if let width { fit(&widths, &shown, to: width) }
        return all.map { row in
            var line = ""
            for index in shown {
                if index != shown.first { line += String(repeating: " ", count: Self.gap) }
                let isLast = index == shown.last && !columns[index].isRight
                let text = row[index].cut(to: widths[index])
                line += isLast ? text : text.padded(to: widths[index], onTheLeft: columns[index].isRight)
            }
            return line
        }
    }

    /// The least costly comes first: expendable columns become narrow, then long names shrink to the comfortable width,
    /// then columns are removed, the most expendable first, and at last the others become narrow.
    private func fit(_ widths: inout [Int], _ shown: inout [Int], to width: Int) {
        func excess() -> Int { shown.reduce(0) { $0 + widths[$1] } + Self.gap * (shown.count - 1) - width }
        func narrow(to least: (Column) -> Int?, where isMeant: (Column) -> Bool) {
            for index in shown where isMeant(columns[index]) {
                guard let least = least(columns[index]), excess() > 0 else { continue }
                widths[index] = max(min(widths[index], least), widths[index] - excess())
            }
        }
        narrow(to: \.narrowest) { $0.expendability > 0 }
        narrow(to: \.comfortable) { $0.expendability == 0 }
        while excess() > 0, let most = shown.max(by: { columns[$0].expendability < columns[$1].expendability }),
            columns[most].expendability > 0
        {
            shown.removeAll { $0 == most }
        }
        narrow(to: \.narrowest) { $0.expendability == 0 }
    }
}
