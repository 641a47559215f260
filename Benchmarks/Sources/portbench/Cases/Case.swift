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

    /// A case of the same contest on different processors, a row for each placement that is possible.
    init(on placements: [Placement], _ contest: @escaping (Placement) -> Contest) {
        self.init(contest(.anywhere).id) { settings in
            var results = try placements.filter { $0.obstacle == nil }.map { placement in
                var contest = contest(placement)
                contest.variant = placement.variant
                return try contest.measure(settings)
            }
            for obstacle in placements.compactMap(\.obstacle) where !results.isEmpty { results[0].add(note: obstacle) }
            return results
        }
    }

    /// All cases, in the order in which they are shown.
    static var all: [Case] { inProcess + processes + loans + scale + [idle] + counts + memory }
}
