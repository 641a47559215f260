// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The page about memory order has each atomic and fence whose order matters, and no other.
@Suite("Memory order", .leakCheck)
struct MemoryOrderTests {
    /// An atomic or a fence by its name, in a file.
    private struct Access: Hashable {
        var name: String
        var file: String
    }

    @Test("each access that is not relaxed has a row on the page with its order, and each row has one of them")
    func rows() throws {
        let found = try Self.accesses()
        var documented: Set<Access> = []
        for row in try Document("Docs/MemoryOrder.md").tableRows where row.count == 5 && row[0].hasPrefix("`") {
            var orders: Set<String> = []
            for file in row[1].split(separator: ",") {
                let access = Access(name: Self.unquoted(row[0]), file: Self.unquoted(String(file)))
                #expect(documented.insert(access).inserted, "twice: \(access.name) in \(access.file)")
                if found[access] == nil { Issue.record("no access: \(access.name) in \(access.file)") }
                orders.formUnion(found[access] ?? [])
            }
            #expect(Set(row[2].matches(of: /total|acquire|release/).map { String($0.0) }) == orders, "\(row[0])")
        }
        for row in found.keys where !documented.contains(row) { Issue.record("no row: \(row.name) in \(row.file)") }
        #expect(found.count > 40)
    }

    /// The accesses that are not relaxed, each with the words of the page for its orders.
    private static func accesses() throws -> [Access: Set<String>] {
        let access =
            /(\w+)(?:\.pointee)?\s*\.(?:load|store|exchange|compareExchange|weakCompareExchange|add|subtract|wrappingAdd|wrappingSubtract)\((?:[^()]|\([^()]*\))*?ordering: \.(\w+)/
        // A fence of one processor names no order: that of x86-64 orders stores.
        let accessInC = /(atomic_\w+|\w+fence)\((?:[^()]*memory_order_(\w+))?/
        let words: [String: Set<String>] = [
            "acquiring": ["acquire"], "acquire": ["acquire"], "releasing": ["release"], "release": ["release"],
            "acquiringAndReleasing": ["acquire", "release"], "acq_rel": ["acquire", "release"],
            "sequentiallyConsistent": ["total"], "seq_cst": ["total"], "relaxed": [],
        ]
        var found: [Access: Set<String>] = [:]
        func insert(_ name: Substring, _ file: String, _ order: Substring) throws {
            let orders = try #require(words[String(order)], "\(file): \(order)")
            if !orders.isEmpty { found[Access(name: String(name), file: file), default: []].formUnion(orders) }
        }
        for file in try Document.sources() where file.text.contains(anyOf: ["ordering: .", "atomic_", "fence("]) {
            let path = String(file.path.dropFirst("Sources/".count))
            if path.hasSuffix(".swift") {
                // No empty line is within an access.
                for part in file.text.components(separatedBy: "\n\n") where part.contains(anyOf: ["ordering: ."]) {
                    let text = part.replacing(/\/\/[^\n]*/, with: "")
                    for match in text.matches(of: access) { try insert(match.1, path, match.2) }
                }
            } else {
                let text = file.text.replacing(/\/\/[^\n]*/, with: "").replacing(/(?s)\/\*.*?\*\//, with: "")
                for match in text.matches(of: accessInC) {
                    try insert(match.1, path, match.2 ?? (match.1.hasSuffix("sfence") ? "release" : "seq_cst"))
                }
            }
        }
        return found
    }

    private static func unquoted(_ text: String) -> String {
        text.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
    }
}
