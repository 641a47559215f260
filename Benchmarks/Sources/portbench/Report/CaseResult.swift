// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The result of a case. Smaller is better.
struct CaseResult: Codable {
    var `case`: String
    /// Which of several rows of the case; nil when it has one.
    var variant: String?
    var unit: String
    /// The median of the rounds.
    var value: Double
    var p50: Double
    var p99: Double
    var minimum: Double
    var maximum: Double
    /// The name of the baseline.
    var baseline: String
    var baselineValue: Double
    /// The name of the bare contestant that the row is compared with over several runs: the baseline if that is bare,
    /// otherwise the first bare one of the others; nil when none is.
    var bare: String?
    /// How many times the baseline; nil when the baseline is zero and this is not.
    var ratio: Double?
    var goal: Goal
    var peers: [String: Double] = [:]
    var note: String?
    /// The run that it comes from; nil until that is over.
    var run: Run?

    init(
        _ id: String, _ variant: String?, _ unit: Unit, ours: Score, baseline: (name: String, score: Score),
        goal: Goal = Goal()
    ) {
        self.case = id
        self.variant = variant
        self.unit = unit.rawValue
        value = unit.value(ours.value)
        p50 = unit.value(ours.spread.median)
        p99 = unit.value(ours.spread.p99)
        minimum = unit.value(ours.spread.minimum)
        maximum = unit.value(ours.spread.maximum)
        self.baseline = baseline.name
        baselineValue = unit.value(baseline.score.value)
        bare = Contestant.isBare(baseline.name) ? baseline.name : nil
        self.goal = goal
        if baselineValue > 0 { ratio = value / baselineValue } else if value == 0 { ratio = 1 }
    }

    /// Adds to the note.
    mutating func add(note more: String) {
        note = note.map { "\($0); \(more)" } ?? more
    }

    /// The case, and which row of it.
    var title: String { variant.map { "\(self.case) (\($0))" } ?? self.case }

    /// The goal of the case, in words; empty when it has none.
    var goalWords: String {
        [goal.value.map { "\($0.figure) \(unit)" }, goal.ratio.map { "ratio \($0.figure)" }].compactMap(\.self)
            .joined(separator: ", ")
    }

    /// The goal as a ratio; nil when the case has none.
    var goalRatio: Double? {
        let fromValue = goal.value.flatMap { baselineValue > 0 ? $0 / baselineValue : nil }
        return [goal.ratio, fromValue].compactMap(\.self).min()
    }

    /// Whether it reaches its goal; nil when it has none.
    var isReached: Bool? {
        let answers = [isValueReached, isRatioReached].compactMap(\.self)
        return answers.isEmpty ? nil : answers.allSatisfy(\.self)
    }

    /// The same in words, which say which part of the goal is reached; empty when it has none.
    var reachedWords: String {
        switch (isValueReached, isRatioReached) {
        case (nil, nil): ""
        case (true, false): "not the ratio"
        case (false, true): "the ratio"
        default: isReached == true ? "yes" : "no"
        }
    }

    private var isValueReached: Bool? { goal.value.map { value <= $0 } }
    private var isRatioReached: Bool? { goal.ratio.map { limit in ratio.map { $0 <= limit } ?? false } }
}
