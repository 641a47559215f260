// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Random scenarios. The generator itself avoids three things, because only the whole scenario shows them; everything
// else is avoided while a scenario is played, by the rules of the bookkeeping:
//
//   D8   the version-1 sources of a scenario have one order, and so have its timers
//   D9   a timer's date is not past when it is set: it has just come, or is an hour ahead
//   D25  observers have orders of their own when modes become common during the scenario

import TestSupport

/// Makes a random scenario.
struct ScenarioGenerator {
    private var random: SplitMix64
    private var items: [Item] = []
    private var changesCommonModes = false

    private init(_ random: SplitMix64) {
        self.random = random
    }

    /// The scenario of a number, for the seed of this run.
    static func scenario(_ number: Int) -> Scenario {
        var generator = ScenarioGenerator(Seed.generator(stream: UInt64(number)))
        return generator.make()
    }

    private mutating func make() -> Scenario {
        changesCommonModes = chance(1, in: 3)
        makeItems()
        for index in items.indices { items[index].script = script() }
        var steps: [Action] = []
        for item in items where !isBlock(item) && !chance(1, in: 6) { steps.append(.add(item.name, initialMode())) }
        steps.shuffle(using: &random)
        for _ in 0..<Int.random(in: 2...5, using: &random) {
            for _ in 0..<Int.random(in: 0...4, using: &random) { steps.append(action()) }
            steps.append(run())
        }
        var scenario = Scenario(items, steps, traced: [.default, .alpha, .beta])
        scenario.isGuarded = true
        return scenario
    }

    private mutating func makeItems() {
        let portOrder = order()
        let timerOrder = order()
        for index in 1...Int.random(in: 1...4, using: &random) {
            items.append(
                Item(name: "s\(index)", kind: .source(reportsModes: chance(1, in: 3)), order: order()))
        }
        for index in 0..<Int.random(in: 0...3, using: &random) {
            items.append(Item(name: "p\(index + 1)", kind: .port, order: portOrder))
        }
        for index in 0..<Int.random(in: 0...3, using: &random) {
            let date = chance(1, in: 2) ? FireDate.due : .far
            items.append(
                Item(name: "t\(index + 1)", kind: .timer(date, repeats: chance(1, in: 2)), order: timerOrder))
        }
        for index in 0..<Int.random(in: 0...4, using: &random) {
            let activities = Activity.allCases.filter { _ in chance(1, in: 3) }
            items.append(
                Item(
                    name: "o\(index + 1)", kind: .observer(activities, repeats: !chance(1, in: 4)),
                    order: changesCommonModes ? index * 7 % 5 : order()))
        }
        for index in 1...Int.random(in: 1...4, using: &random) {
            var modes = [modeOrCommon()]
            if chance(1, in: 3) { modes.append(modeOrCommon()) }
            items.append(Item(name: "b\(index)", kind: .block(modes)))
        }
    }

    private mutating func script() -> [[Action]] {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in
            (0..<Int.random(in: 0...3, using: &random)).map { _ in action() }
        }
    }

    private mutating func action() -> Action {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<11: name("s").map { .signal($0) } ?? .askCurrentMode
        case 11..<24: name("p").map { .write($0) } ?? .askCurrentMode
        case 24..<32: .post(name("b") ?? "b1")
        case 32..<40: name("t").map { .setDate($0, chance(2, in: 3) ? .due : .far) } ?? .askModes
        case 40..<51: member().map { .add($0, modeOrCommon()) } ?? .askModes
        case 51..<58: member().map { .remove($0, modeOrCommon()) } ?? .askModes
        case 58..<61: member().map { .invalidate($0) } ?? .askModes
        case 61..<68: .stop
        case 68..<72: .wakeUp
        case 72..<87: run()
        case 87..<90: changesCommonModes ? .addCommonMode(mode()) : .wakeUp
        case 90..<95: member().map { .askContains($0, modeOrCommon()) } ?? .askModes
        case 95..<97: member().map { .askValid($0) } ?? .askModes
        case 97..<99: .askCurrentMode
        default: .askModes
        }
    }

    private mutating func run() -> Action {
        let limit: Limit =
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<5: .zero
            case 5: .milliseconds(2)
            default: .long
            }
        let mode: Mode = chance(1, in: 25) ? (chance(1, in: 2) ? .ghost : .common) : mode()
        return .run(mode, limit, returns: chance(1, in: 2))
    }

    private mutating func mode() -> Mode {
        switch Int.random(in: 0..<6, using: &random) {
        case 0..<3: .default
        case 3..<5: .alpha
        default: .beta
        }
    }

    /// A mode, or all common ones.
    private mutating func modeOrCommon() -> Mode {
        chance(1, in: 4) ? .common : mode()
    }

    /// Where an item is put at first: mostly where runs find it.
    private mutating func initialMode() -> Mode {
        chance(1, in: 2) ? .default : modeOrCommon()
    }

    private mutating func order() -> Int {
        chance(1, in: 2) ? 0 : Int.random(in: -2...2, using: &random)
    }

    private mutating func chance(_ part: Int, in whole: Int) -> Bool {
        Int.random(in: 0..<whole, using: &random) < part
    }

    private mutating func name(_ prefix: String) -> String? {
        items.map(\.name).filter { $0.hasPrefix(prefix) }.randomElement(using: &random)
    }

    private mutating func member() -> String? {
        items.filter { !isBlock($0) }.map(\.name).randomElement(using: &random)
    }

    private func isBlock(_ item: Item) -> Bool {
        if case .block = item.kind { return true }
        return false
    }
}
