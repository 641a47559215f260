// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A scenario in readable form, as it would be written in a test.

extension Scenario: CustomStringConvertible {
    var description: String {
        let items = items.map { "    \($0)" }.joined(separator: "\n")
        let steps = steps.map { "    \($0)" }.joined(separator: "\n")
        return "items:\n\(items)\nsteps:\n\(steps)"
    }

    /// How large it is, for comparing reports.
    var size: Int {
        steps.count + items.reduce(0) { $0 + 1 + $1.script.reduce(0) { $0 + $1.count } }
    }
}

extension Item: CustomStringConvertible {
    var description: String {
        let calls = script.enumerated().filter { !$0.element.isEmpty }
            .map { "call \($0.offset + 1): \($0.element.map { "\($0)" }.joined(separator: ", "))" }
        return (["\(name): \(kindDescription)"] + calls).joined(separator: "; ")
    }

    private var kindDescription: String {
        switch kind {
        case .source: "version-0 source, order \(order)"
        case .port: "version-1 source, order \(order)"
        case .timer(let date, let repeats): "\(repeats ? "repeating" : "one-shot") timer, \(date), order \(order)"
        case .observer(let activities, let repeats):
            "\(repeats ? "" : "one-shot ")observer of \(activities.map { "\($0)" }.joined(separator: "|")), order \(order)"
        case .block(let modes): "block for \(modes.map(\.rawValue).joined(separator: ", "))"
        }
    }
}

extension Action: CustomStringConvertible {
    var description: String {
        switch self {
        case .add(let item, let mode): "add \(item) to \(mode)"
        case .remove(let item, let mode): "remove \(item) from \(mode)"
        case .invalidate(let item): "invalidate \(item)"
        case .signal(let item): "signal \(item)"
        case .write(let item): "write \(item)"
        case .setDate(let item, let date): "set date of \(item) to \(date)"
        case .post(let item): "post \(item)"
        case .addCommonMode(let mode): "make \(mode) common"
        case .run(let mode, let limit, let returns): "run in \(mode) for \(limit)\(returns ? ", until a source" : "")"
        case .stop: "stop"
        case .wakeUp: "wake up"
        case .askContains(let item, let mode): "is \(item) in \(mode)?"
        case .askValid(let item): "is \(item) valid?"
        case .askCurrentMode: "which mode?"
        case .askModes: "which modes?"
        }
    }

    /// The item that it is about.
    var item: String? {
        switch self {
        case .add(let item, _), .remove(let item, _), .invalidate(let item), .signal(let item), .write(let item),
            .setDate(let item, _), .post(let item), .askContains(let item, _), .askValid(let item):
            item
        case .addCommonMode, .run, .stop, .wakeUp, .askCurrentMode, .askModes: nil
        }
    }
}
