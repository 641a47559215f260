// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls

/// Contestants that do the same operation: ours, then the baseline, then others.
struct Contest {
    let id: String
    var variant: String?
    var unit = Unit.microseconds
    var goal = Goal()
    /// Makes ours.
    let ours: () throws -> Contestant
    /// Makes the baseline.
    let baseline: () throws -> Contestant
    /// Make others; one that is not available is left out.
    var others: [() throws -> Contestant] = []

    /// Measures all, in alternation.
    func measure(_ settings: Settings) throws -> CaseResult {
        var contestants: [Contestant] = []
        defer { for contestant in contestants { contestant.end() } }
        contestants.append(try ours())
        contestants.append(try baseline())
        var notes: [String] = []
        for make in others {
            do { contestants.append(try make()) } catch { notes.append("\(error)") }
        }
        let scores = try Self.scores(of: contestants, settings)
        var result = CaseResult(
            id, variant, unit, ours: scores[0], baseline: (contestants[1].name, scores[1]), goal: goal)
        for (contestant, score) in zip(contestants, scores).dropFirst(2) {
            result.peers[contestant.name] = unit.value(score.value)
        }
        result.bare = contestants.dropFirst().map(\.name).first(where: Contestant.isBare)
        if !notes.isEmpty { result.note = notes.joined(separator: "; ") }
        return result
    }

    private static func scores(of contestants: [Contestant], _ settings: Settings) throws -> [Score] {
        let counts = try contestants.map { try countPerSlice($0, settings) }
        var rounds = contestants.map { _ in [Double]() }
        var laps = contestants.map { _ in [Double]() }
        for round in 0..<settings.rounds {
            for offset in contestants.indices {
                // No contestant always follows the same other one.
                let index = (offset + round) % contestants.count
                let (contestant, count) = (contestants[index], counts[index])
                rounds[index].append(Double(try contestant.run(count, nil)) / Double(count))
                guard contestant.timesLaps else { continue }
                let some = max(1, min(count / 4, 50_000))
                let recorded = Laps(capacity: some)
                _ = try contestant.run(some, recorded)
                laps[index] += recorded.times.map(Double.init)
            }
        }
        return zip(rounds, laps).map { Score(rounds: $0, laps: $1) }
    }

    /// Warms a contestant up, and finds how many operations fill a slice.
    private static func countPerSlice(_ contestant: Contestant, _ settings: Settings) throws -> Int {
        // The first operation waits until threads and processes have started.
        _ = try contestant.run(1, nil)
        var count = 1
        while true {
            // The quicker of two: a disturbance must not pass for slowness, or a slice would have only a few
            // operations.
            let time = max(1, min(try contestant.run(count, nil), try contestant.run(count, nil)))
            if time >= settings.sliceTime / 8 || count >= settings.most {
                return max(1, min(settings.most, Int(Double(count) * Double(settings.sliceTime) / Double(time))))
            }
            let factor = Double(settings.sliceTime) / 6 / Double(time)
            count = min(settings.most, max(count + 1, Int(Double(count) * min(factor, 8))))
        }
    }
}
