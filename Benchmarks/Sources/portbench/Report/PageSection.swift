// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The part of a page that this program writes: the lines between two lines that name it.
struct PageSection {
    private let path: String
    private let name: String

    /// Finds the section, and checks, unless it is only read, that the page can be written: a run takes minutes, and an
    /// error must show before it.
    init(_ name: String, of path: String, isRead: Bool = false) throws {
        // A symbolic link stays a link.
        self.path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        self.name = name
        _ = try parts()
        if !isRead, !FileManager.default.isWritableFile(atPath: self.path) {
            throw BenchmarkFailure(
                "\(path) cannot be written: let this user write it, or give --page a file that can be")
        }
    }

    private var firstLine: String { "<!-- portbench \(name) -->" }
    private var lastLine: String { "<!-- end of portbench \(name) -->" }

    /// Writes the sentence about the run and the table. The rest of the page stays as it is at that moment.
    func write(_ table: String, of run: Run) throws {
        let (before, _, after) = try parts()
        let content = ["", Self.wrapped(run.sentence), "", table, ""]
        let text = (before + content + after).joined(separator: "\n")
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    /// Text in lines of at most 120 characters.
    private static func wrapped(_ text: String) -> String {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + word.count < 120 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.joined(separator: "\n")
    }

    /// The rows of its table.
    func rows() throws -> [MarkdownTable.Row] { MarkdownTable.rows(try parts().section) }

    /// The lines up to the first line of the section, those between, and those from its last line on.
    private func parts() throws -> (before: [String], section: [String], after: [String]) {
        guard let data = FileManager.default.contents(atPath: path), let text = String(data: data, encoding: .utf8)
        else {
            throw BenchmarkFailure(
                "\(path) cannot be read: give --page a text file that is there and that this user may read")
        }
        let lines = text.components(separatedBy: "\n")
        let starts = lines.indices.filter { lines[$0] == firstLine }
        let ends = lines.indices.filter { lines[$0] == lastLine }
        guard let start = starts.first, let end = ends.first else {
            throw BenchmarkFailure(
                "\(path) has no section \(name): put the lines \(firstLine) and \(lastLine) where the table is to stand, "
                    + "or name another section with --section")
        }
        guard starts.count == 1, ends.count == 1, start < end else {
            throw BenchmarkFailure(
                "\(path) does not have the section \(name) once: leave one line \(firstLine), and after it one \(lastLine)"
            )
        }
        return (Array(lines[...start]), Array(lines[(start + 1)..<end]), Array(lines[end...]))
    }
}
