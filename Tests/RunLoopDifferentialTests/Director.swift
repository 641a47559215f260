// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The trace of a scenario, and the only code that interprets actions. It drives both loops, so all that can differ is
// what the loop does.

import PortSystem
import RunLoopCore
import Testing

/// What happened, in order. An activity is its name; a callout is the item's name; "=stopped" is how a run ended; words
/// with a question mark are answers. A mode other than the default one follows "@".
struct Trace: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    var entries: [String] = []

    init() {}

    init(stringLiteral text: String) {
        entries = text.split { $0 == " " || $0 == "\n" }.map(String.init)
    }

    var description: String { entries.joined(separator: " ") }
}

/// Plays a scenario on a loop of the present thread.
final class Director: Stage {
    private let scenario: Scenario
    private let items: [String: Item]
    private var calls: [String: Int] = [:]
    private var moves: [String] = []
    private var loop: (any LoopUnderTest)?
    private var trace = Trace()
    private var reach = Reach()
    private var books: Bookkeeping

    init(_ scenario: Scenario) {
        self.scenario = scenario
        items = Dictionary(scenario.items.map { ($0.name, $0) }) { first, _ in first }
        books = Bookkeeping(scenario)
    }

    /// Plays the scenario.
    ///
    /// - Returns: the trace, and how much of what there is was done.
    static func play<Loop: LoopUnderTest>(_ scenario: Scenario, on _: Loop.Type) throws -> (trace: Trace, reach: Reach)
    {
        let director = Director(scenario)
        let loop = try Loop(scenario, on: director)
        director.loop = loop
        for step in scenario.steps { director.perform(step) }
        loop.tearDown()
        director.loop = nil
        return (director.trace, director.reach)
    }

    func activity(_ activity: Activity, in mode: Mode, isLast: Bool) {
        if isLast {
            if scenario.isGuarded { attend(books.endActivity(activity)) }
        } else {
            trace.entries.append("\(activity)" + Self.suffix(mode))
            books.beginActivity(activity)
        }
    }

    /// A guarded scenario never sleeps for long: what would sleep is woken, and stopped when that has no effect.
    private func attend(_ need: Bookkeeping.Need) {
        switch need {
        case .nothing: break
        case .wakeUp: loop?.wakeUp()
        case .stop: loop?.stop()
        }
    }

    func callout(_ name: String) {
        guard let item = items[name] else { return }
        trace.entries.append(name)
        reach.count(item.kind)
        let number = calls[name, default: 0]
        calls[name] = number + 1
        books.beginCallout(item)
        if number < item.script.count {
            for action in item.script[number] { perform(action) }
        }
        books.endCallout(item)
    }

    func moved(_ item: String, entered: Bool, _ mode: Mode) {
        reach.count(.routine)
        moves.append("\(item)\(entered ? "+" : "-")\(mode)")
    }

    private static func suffix(_ mode: Mode) -> String {
        mode == .default ? "" : "@\(mode)"
    }

    private func perform(_ action: Action) {
        guard let loop else { return }
        guard !scenario.isGuarded || books.permits(action) else { return reach.count(.passedOver) }
        reach.count(action, isInside: !books.levels.isEmpty)
        switch action {
        case .add(let item, let mode): loop.add(item, to: mode)
        case .remove(let item, let mode): loop.remove(item, from: mode)
        case .invalidate(let item): loop.invalidate(item)
        case .signal(let item): loop.signal(item)
        case .write(let item): loop.write(item)
        case .setDate(let item, let date): loop.setDate(item, date)
        case .post(let name): if case .block(let modes) = items[name]?.kind { loop.post(name, in: modes) }
        case .addCommonMode(let mode): loop.addCommonMode(mode)
        case .run(let mode, let limit, let returns): run(mode, limit, returns, on: loop)
        case .stop: loop.stop()
        case .wakeUp: loop.wakeUp()
        case .askContains, .askValid, .askCurrentMode, .askModes: trace.entries.append(answer(to: action, from: loop))
        }
        // Over several modes these routines come in no particular order.
        trace.entries += moves.sorted()
        moves = []
    }

    private func run(_ mode: Mode, _ limit: Limit, _ returns: Bool, on loop: any LoopUnderTest) {
        books.beginRun(mode, limit, returns)
        reach.count(.depth(books.levels.count))
        let outcome = loop.run(mode, limit, returns: returns)
        books.endRun()
        reach.count(.result(outcome))
        trace.entries.append("=\(outcome)" + Self.suffix(mode))
    }

    private func answer(to question: Action, from loop: any LoopUnderTest) -> String {
        switch question {
        case .askContains(let item, let mode): "\(item)?\(mode):\(loop.contains(item, in: mode) ? "yes" : "no")"
        case .askValid(let item): "\(item)?\(loop.isValid(item) ? "valid" : "invalid")"
        case .askCurrentMode: "mode?\(loop.currentMode?.rawValue ?? "none")"
        case .askModes: "modes?\(loop.modes.sorted().map(\.rawValue).joined(separator: ","))"
        default: ""
        }
    }
}
