// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// A file to count.
struct InputFile: Sendable {
    let name: String
    let bytes: [UInt8]
    /// Its size in the file system; nil when it is not a regular file.
    let size: Int?

    /// Reads files.
    static func read(_ names: [String]) throws -> [InputFile] {
        try names.map { name in
            do {
                if name.isEmpty { throw CocoaError(.fileReadNoSuchFile) }  // a URL would make it the working directory
                let target = URL(fileURLWithPath: name).resolvingSymlinksInPath().path
                let attributes = try FileManager.default.attributesOfItem(atPath: target)
                let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: name))
                let bytes = try handle.readToEnd() ?? Data()
                try handle.close()
                let isRegular = attributes[.type] as? FileAttributeType == .typeRegular
                return InputFile(name: name, bytes: Array(bytes), size: isRegular ? bytes.count : nil)
            } catch {
                throw Failure("\(name): \(reason(error))")
            }
        }
    }

    /// The README of this example, by the shortest path.
    static var readmeBesideThisSource: String {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let readme = directory.appendingPathComponent("README.md").path
        let here = FileManager.default.currentDirectoryPath + "/"
        return readme.hasPrefix(here) ? String(readme.dropFirst(here.count)) : readme
    }
}

/// Counts in the layout of wc(1).
struct Table {
    private var rows: [(Counts, String)] = []
    private let width: Int

    init(for files: [InputFile]) {
        let total = files.reduce(0) { $0 + ($1.size ?? 0) }
        let isAllRegular = files.allSatisfy { $0.size != nil }
        width = max(String(total).count, isAllRegular ? 1 : 7)
    }

    mutating func add(_ counts: Counts, _ name: String) {
        rows.append((counts, name))
    }

    /// Prints the rows, and their total when there are several.
    func print() {
        for (counts, name) in rows { Transcript.line(row(counts, name)) }
        if rows.count > 1 { Transcript.line(row(rows.reduce(Counts()) { $0 + $1.0 }, "total")) }
    }

    private func row(_ counts: Counts, _ name: String) -> String {
        [counts.lines, counts.words, counts.bytes].map { number in
            let digits = String(number)
            return String(repeating: " ", count: max(0, width - digits.count)) + digits
        }.joined(separator: " ") + " " + name
    }
}
