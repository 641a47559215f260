// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a run loop has to do, as a value that says nothing about which loop it is. A scenario has items, each with a
// script (what its handler does, call by call), and steps that are done from outside of any run. The same scenario is
// played on a ThreadRunLoop and on a CFRunLoop, and yields a trace each.

/// A mode of a scenario.
enum Mode: String, CaseIterable, Sendable, Comparable {
    case `default`, alpha, beta
    /// The pseudo mode of all common modes.
    case common
    /// A mode in which no scenario puts anything.
    case ghost

    static func < (left: Mode, right: Mode) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The points at which observers are called, with the values of both loops.
enum Activity: UInt, CaseIterable, Sendable {
    case entry = 1
    case timers = 2
    case sources = 4
    case wait = 32
    case woke = 64
    case exit = 128
}

/// When a timer fires. Nothing depends on how long anything lasts: a date has come, or is an hour ahead.
enum FireDate: Hashable, Sendable {
    /// At the moment at which this is said.
    case due
    /// That many hours ago.
    case past(hours: Int)
    /// In an hour.
    case far
    /// In that many milliseconds; for scenarios in which nothing else can happen meanwhile.
    case soon(milliseconds: Int)
}

/// How long a run may go on.
enum Limit: Hashable, Sendable {
    case zero
    /// For runs that sleep in their first pass until they are over.
    case milliseconds(Int)
    /// For scenarios in which CFRunLoop sleeps until that many milliseconds are over, and this package's loop does not:
    /// that has no limit.
    case stuck(milliseconds: Int)
    /// Long enough that only the watchdog ends it.
    case long
}

/// Something that is done from outside of a run, or by a handler.
enum Action: Hashable, Sendable {
    case add(String, Mode)
    case remove(String, Mode)
    case invalidate(String)
    /// Signals a version-0 source.
    case signal(String)
    /// Makes the descriptor of a version-1 source readable.
    case write(String)
    case setDate(String, FireDate)
    /// Posts a block for its modes.
    case post(String)
    case addCommonMode(Mode)
    case run(Mode, Limit, returns: Bool = false)
    case stop
    case wakeUp
    case askContains(String, Mode)
    case askValid(String)
    case askCurrentMode
    case askModes
}

/// Something that is in a loop's modes, or a block.
struct Item: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A version-0 source; whether its schedule and cancel routines are in the trace.
        case source(reportsModes: Bool)
        /// A version-1 source over an eventfd.
        case port
        case timer(FireDate, repeats: Bool)
        case observer([Activity], repeats: Bool)
        case block([Mode])
    }

    var name: String
    var kind: Kind
    var order = 0
    /// What its handler does, by the number of the call. It does nothing in calls after that.
    var script: [[Action]] = []

    static func source(_ name: String, order: Int = 0, reportsModes: Bool = false, _ script: [Action]...) -> Item {
        Item(name: name, kind: .source(reportsModes: reportsModes), order: order, script: script)
    }

    static func port(_ name: String, order: Int = 0, _ script: [Action]...) -> Item {
        Item(name: name, kind: .port, order: order, script: script)
    }

    static func timer(
        _ name: String, _ date: FireDate, repeats: Bool = false, order: Int = 0, _ script: [Action]...
    ) -> Item {
        Item(name: name, kind: .timer(date, repeats: repeats), order: order, script: script)
    }

    static func observer(
        _ name: String, _ activities: [Activity], repeats: Bool = true, order: Int = 0, _ script: [Action]...
    ) -> Item {
        Item(name: name, kind: .observer(activities, repeats: repeats), order: order, script: script)
    }

    static func block(_ name: String, in modes: [Mode] = [.default], _ script: [Action]...) -> Item {
        Item(name: name, kind: .block(modes), script: script)
    }
}

/// What is asked of both loops.
struct Scenario: Hashable, Sendable {
    var items: [Item]
    var steps: [Action]
    /// The modes whose activities are in the trace.
    var traced: [Mode] = [.default]
    /// Whether actions that lead into a known difference are passed over, and sleeps are ended. See `Bookkeeping`.
    var isGuarded = false

    init(_ items: [Item], _ steps: [Action], traced: [Mode] = [.default]) {
        self.items = items
        self.steps = steps
        self.traced = traced
    }
}
