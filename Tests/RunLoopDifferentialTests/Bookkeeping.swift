// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a guarded scenario knows about itself while it is played, so that it keeps away from the known differences
// between the loops and from nothing else. It sees the same things on both loops, as long as these behave alike, so it
// decides the same on both. Each rule in `Bookkeeping+Rules.swift` names the row of the table in Docs/RunLoopOrder.md
// that is its reason.
//
// The rows about sleeps that miss something need no rule: a guarded scenario never sleeps for long. Before each wait
// the harness wakes a loop that has nothing to wait for, or stops it.

/// A record of what is in a guarded scenario's loop, and of the runs that are under way.
struct Bookkeeping {
    struct Block {
        var name: String
        var modes: [Mode]
        /// A block phase has started while it waited, and may not be over.
        var isInPhase = false
    }

    /// A run that is under way.
    struct Level {
        var mode: Mode
        var limit: Limit
        var returns: Bool
        var passes = 0
        /// The numbers, over all runs, of the current pass and of the one before.
        var passNumber = 0
        var lastPassNumber = 0
        /// How many passes had no effect.
        var idlePasses = 0
        /// The activity whose observers are being called.
        var activity: Activity?
        /// The wait of the pass is over, for certain.
        var hasWaited = false
        var hasHandledSource = false
        var isInExit = false
        var firesTimers = false
        /// The signalled sources that this pass performs and has not reached, in order.
        var collected: [String] = []
        var hasCollected = false
        var isInBlocks = false
    }

    /// What has to be done so that the wait does not last.
    enum Need {
        case nothing, wakeUp, stop
    }

    let items: [String: Item]
    var invalid: Set<String> = []
    var members: [Mode: Set<String>] = [:]
    var commonModes: Set<Mode> = [.default]
    var commonItems: Set<String> = []
    /// The modes to which an item was added by itself.
    var ownModes: [String: Set<Mode>] = [:]
    /// When a source was signalled, for those that are.
    var signals: [String: Int] = [:]
    var lastSignal = 0
    var readable: Set<String> = []
    /// Timers whose date has come.
    var due: Set<String> = []
    var firing: Set<String> = []
    /// Timers that got a date while they fired, and whether it has come.
    var redated: [String: Bool] = [:]
    var blocks: [Block] = []
    var levels: [Level] = []
    /// A wake-up may wait in CFRunLoop for a wait to end.
    var hasWakeUp = false
    /// How many passes had begun when a wake-up came outside of passes: at entry, where a stop may leave it to the next
    /// run.
    var passesBeforeWakeUp: Int?
    var passCount = 0
    /// Modes in which a port was served since their loop found nothing there.
    var servedModes: Set<Mode> = []
    var actionsLeft = 200

    init(_ scenario: Scenario) {
        items = Dictionary(scenario.items.map { ($0.name, $0) }) { first, _ in first }
        for item in scenario.items {
            if case .timer(let date, _) = item.kind, date == .due { due.insert(item.name) }
        }
    }

    func modes(of item: String) -> [Mode] {
        members.filter { $0.value.contains(item) }.map(\.key)
    }

    func readablePorts(in mode: Mode) -> Set<String> {
        readable.intersection(members[mode] ?? [])
    }

    /// The timers of a mode whose date has come, and which can fire.
    func dueTimers(in mode: Mode) -> Set<String> {
        due.subtracting(firing).intersection(members[mode] ?? [])
    }

    /// Whether blocks wait for a mode, among those that fit.
    func hasBlock(for mode: Mode, where fits: (Block) -> Bool = { _ in true }) -> Bool {
        blocks.contains { matches($0, mode) && fits($0) }
    }

    func matches(_ block: Block, _ mode: Mode) -> Bool {
        block.modes.contains(mode) || commonModes.contains(mode) && block.modes.contains(.common)
    }

    func isOneShot(_ timer: String) -> Bool {
        if case .timer(_, let repeats) = items[timer]?.kind { return !repeats }
        return false
    }

    func isTimer(_ name: String) -> Bool {
        if case .timer = items[name]?.kind { return true }
        return false
    }
}
