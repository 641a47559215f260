// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A case: an id, and how it is measured.
struct Case {
    let id: String
    /// Gives a row, or several.
    let measure: (Settings) throws -> [CaseResult]

    init(_ id: String, measure: @escaping (Settings) throws -> [CaseResult]) {
        (self.id, self.measure) = (id, measure)
    }

    /// A case of one contest.
    init(_ contest: Contest) {
        self.init(contest.id) { [try contest.measure($0)] }
    }

    /// All, in the order in which they are shown.
    static var all: [Case] { inProcess + processes + scale + [idle] + counts + memory }
}
