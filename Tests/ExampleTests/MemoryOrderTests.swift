// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The page about memory order has each atomic whose order matters, and no other.
@Suite("Memory order", .census)
struct MemoryOrderTests {
    /// An atomic by its name, in a file.
    private struct Access: Hashable {
        var name: String
        var file: String
    }

    @Test("each access that is not relaxed has a row on the page, and each row has one of them")
    func rows() throws {
        let documented = try Document("Docs/MemoryOrder.md").tableRows.filter { $0.count == 5 && $0[0].hasPrefix("`") }
            .flatMap { row in
                row[1].split(separator: ",").map {
                    Access(name: Self.unquoted(row[0]), file: Self.unquoted(String($0)))
                }
            }
        let found = try Self.accesses()
        #expect(Set(documented).count == documented.count)
        for row in found.subtracting(documented) { Issue.record("no row: \(row.name) in \(row.file)") }
        for row in Set(documented).subtracting(found) { Issue.record("no access: \(row.name) in \(row.file)") }
        #expect(found.count > 40)
    }

    private static func accesses() throws -> Set<Access> {
        let access =
            /(\w+)(?:\.pointee)?\s*\.(?:load|store|exchange|compareExchange|weakCompareExchange|add|subtract|wrappingAdd|wrappingSubtract)\((?:[^()]|\([^()]*\))*?ordering: \.(\w+)/
        var found: Set<Access> = []
        let directory = Document.packageDirectory + "/Sources"
        for path in try FileManager.default.subpathsOfDirectory(atPath: directory) where path.hasSuffix(".swift") {
            let text = try String(contentsOfFile: directory + "/" + path, encoding: .utf8)
            for match in text.replacing(/\/\/[^\n]*/, with: "").matches(of: access) where match.2 != "relaxed" {
                found.insert(Access(name: String(match.1), file: path))
            }
        }
        return found
    }

    private static func unquoted(_ text: String) -> String {
        text.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
    }
}
