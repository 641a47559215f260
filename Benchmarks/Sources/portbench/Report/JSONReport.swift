// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The results as a list of objects.
enum JSONReport {
    static func write(_ results: [some Encodable], to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try encoder.encode(results).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    /// Reads the results of an earlier run.
    static func read(_ path: String) throws -> [CaseResult] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw BenchmarkFailure("\(path) cannot be read: give --from a file that --json has written")
        }
        do {
            return try JSONDecoder().decode([CaseResult].self, from: data)
        } catch {
            throw BenchmarkFailure(
                "\(path) has no results of one run of this program: give --from a file that --json has written")
        }
    }
}
