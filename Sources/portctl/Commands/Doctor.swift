// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    /// Shows what this system allows and refuses.
    ///
    /// - Returns: whether it refuses nothing that the library uses.
    func doctor() throws -> Bool {
        let findings = Diagnosis(directory: options["--directory"]).findings()
        let table = Table(columns: Finding.columns, rows: findings.map(\.cells))
        try write(table, json: .array(findings.map(\.json))) { $0 == 0 ? .title : findings[$0 - 1].style }
        if !has("--json") {
            let advice = findings.compactMap(\.advice)
            let width = Console.width ?? 100
            try Console.write(
                advice.map { "\n" + Help.wrapped($0.shown, width: width).joined(separator: "\n") + "\n" }.joined())
        }
        return findings.allSatisfy { $0.state != .refused }
    }
}
