// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// How much of what loops can do a scenario did, or many did together. The test of random scenarios demands a minimum
/// of each, so that a generator that misses a feature is noticed.
struct Reach: Hashable, Sendable {
    /// Something that is counted.
    enum Feat: Hashable, Sendable {
        case source, port, timer, observer, block
        /// A schedule or cancel routine was called.
        case routine
        case result(Outcome)
        /// A run began, inside of how many others less one.
        case depth(Int)
        /// An action that a handler did.
        case add, remove, invalidate, signal, write, setDate, post, addCommonMode, stop, wakeUp, question
        /// A run that slept until its limit.
        case sleep
        /// An action was skipped, because of a known difference or a limit of the scenario.
        case passedOver
    }

    private var counts: [Feat: Int] = [:]

    subscript(feat: Feat) -> Int { counts[feat, default: 0] }

    mutating func count(_ feat: Feat) {
        counts[feat, default: 0] += 1
    }

    mutating func count(_ kind: Item.Kind) {
        switch kind {
        case .source: count(Feat.source)
        case .port: count(Feat.port)
        case .timer: count(Feat.timer)
        case .observer: count(Feat.observer)
        case .block: count(Feat.block)
        }
    }

    mutating func count(_ action: Action, isInside: Bool) {
        if case .run(_, .milliseconds, _) = action { count(.sleep) }
        guard isInside else { return }
        switch action {
        case .add: count(.add)
        case .remove: count(.remove)
        case .invalidate: count(.invalidate)
        case .signal: count(.signal)
        case .write: count(.write)
        case .setDate: count(.setDate)
        case .post: count(.post)
        case .addCommonMode: count(.addCommonMode)
        case .stop: count(.stop)
        case .wakeUp: count(.wakeUp)
        case .askContains, .askValid, .askCurrentMode, .askModes: count(.question)
        case .run: break
        }
    }

    mutating func add(_ other: Reach) {
        counts.merge(other.counts, uniquingKeysWith: +)
    }
}

extension Reach: CustomStringConvertible {
    var description: String {
        counts.map { "\($0.key): \($0.value)" }.sorted().joined(separator: "\n")
    }
}
