// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Finds the word that the user probably meant.
enum Suggestion {
    /// The nearest of the candidates; nil when none is near.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let ranked = candidates.map { (candidate: $0, distance: distance(word, $0)) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        if best.distance <= max(1, word.count / 3) { return best.candidate }
        // The user may have written only the beginning of a word, or more than the word.
        return word.count > 2 ? candidates.first { $0.hasPrefix(word) || word.hasPrefix($0) } : nil
    }

    /// How many letters were omitted, added, changed, or swapped with the next.
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var (before, last) = ([Int](), Array(0...right.count))
        for row in left.indices {
            var line = [row + 1]
            for column in right.indices {
                let change = last[column] + (left[row] == right[column] ? 0 : 1)
                var best = min(change, last[column + 1] + 1, line[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    best = min(best, before[column - 1] + 1)
                }
                line.append(best)
            }
            (before, last) = (last, line)
        }
        return last[right.count]
    }
}
