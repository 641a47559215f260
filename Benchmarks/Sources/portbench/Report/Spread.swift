// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A row of a case in several runs: how far the medians of the runs are apart. Smaller is better.
struct Spread: Codable {
    /// The medians of one contestant, a median for each run.
    struct Medians: Codable {
        let name: String
        /// In the order of the runs.
        let values: [Double]
        let minimum: Double
        let median: Double
        /// Nine of ten runs do not exceed it.
        let nineOfTen: Double
        let worst: Double
        /// How many times this contestant's median ours is, each of the same run: the median of the runs, and the
        /// worst. Missing for ours, and where a median is zero.
        var ratio: Double?
        var worstRatio: Double?

        fileprivate init(_ name: String, _ values: [Double], ours: [Double]?) {
            let statistics = Statistics(values)
            (self.name, self.values) = (name, values)
            (minimum, median, worst) = (statistics.minimum, statistics.median, statistics.maximum)
            nineOfTen = statistics.nineOfTen
            guard let ours, statistics.minimum > 0 else { return }
            let ratios = Statistics(zip(ours, values).map { $0 / $1 })
            (ratio, worstRatio) = (ratios.median, ratios.maximum)
        }
    }

    let `case`: String
    let variant: String?
    let unit: String
    let ours: Medians
    /// What ours is compared with: the bare baseline of the row, or its baseline when none is bare.
    let baseline: Medians
    /// The others that took part in all the runs.
    let others: [Medians]
    let run: Run

    /// The spreads of the rows that have results, in the order of the first run that has them.
    static func all(of runs: [[CaseResult]], _ run: Run) -> [Spread] {
        var titles: [String] = []
        for result in runs.joined() where !titles.contains(result.title) { titles.append(result.title) }
        return titles.map { title in
            Spread(runs.compactMap { results in results.first { $0.title == title } }, run)
        }
    }

    /// Of the results of one row, a result for each run in which it could be measured.
    private init(_ results: [CaseResult], _ run: Run) {
        let first = results[0]
        let own = results.map(\.value)
        func medians(_ name: String) -> Medians? {
            let values = results.compactMap { $0.baseline == name ? $0.baselineValue : $0.peers[name] }
            return values.count == results.count ? Medians(name, values, ours: own) : nil
        }
        (self.case, variant, unit, self.run) = (first.case, first.variant, first.unit, run)
        ours = Medians("ports", own, ours: nil)
        let usual = Medians(first.baseline, results.map(\.baselineValue), ours: own)
        baseline = first.bare.flatMap(medians) ?? usual
        let names = [first.baseline] + first.peers.keys.sorted()
        others = names.filter { [name = baseline.name] in $0 != name }.compactMap(medians)
    }

    /// The case, and which row of it.
    var title: String { variant.map { "\(self.case) (\($0))" } ?? self.case }
}
