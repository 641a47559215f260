// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Which actions a guarded scenario skips, and why. All others are carried out.

extension Bookkeeping {
    private static let deepest = 3

    /// Whether an action is done; when it is, the books say what has become of it.
    mutating func permits(_ action: Action) -> Bool {
        if isMuted || actionsLeft == 0 { return false }
        guard isKnownAlike(action) else { return false }
        var changed = self
        let leavesNoTrace = changed.apply(action)
        guard leavesNoTrace, !changed.mixesEvents else { return false }
        self = changed
        actionsLeft -= 1
        return true
    }

    /// A run that lasts for some milliseconds sleeps until they are over; whether the limit has come while something
    /// else happened would be a matter of time.
    private var isMuted: Bool {
        levels.contains { if case .milliseconds = $0.limit { true } else { false } }
    }

    private func isKnownAlike(_ action: Action) -> Bool {
        switch action {
        case .add(let item, _): !isCollected(item)
        case .remove(let item, let mode): mayRemove(item, mode)
        case .invalidate(let item): mayInvalidate(item)
        // D27: an item that is in the common modes and in none of them is forgotten, or stays.
        case .askContains(let item, .common): !isStranded(item)
        case .addCommonMode: mayAddCommonMode
        case .run(let mode, let limit, _): mayRun(mode, limit)
        case .stop: mayStop
        // D26: the event that ended a wait is consumed before the observers are notified of it.
        case .write(let item): !(hasTakenEvent && readable.contains(item))
        case .setDate(let item, _): !(hasTakenEvent && due.contains(item))
        default: true
        }
    }

    /// D26: whether observers are being notified that a wait is over that an event has ended.
    private var hasTakenEvent: Bool {
        levels.contains { level in
            level.activity == .woke
                && !(readablePorts(in: level.mode).isEmpty && dueTimers(in: level.mode).isEmpty)
        }
    }

    private func isCollected(_ item: String) -> Bool {
        levels.contains { $0.collected.contains(item) }
    }

    private func mayRemove(_ item: String, _ mode: Mode) -> Bool {
        // D18: what was added by itself stays when it is removed from the common modes.
        if mode == .common, let own = ownModes[item], !own.isDisjoint(with: commonModes) { return false }
        // D21: what is removed by a callout of its own phase is not called any more.
        if isCollected(item) { return false }
        // D26: what a source that was removed then has lost is not there when it comes back.
        if hasTakenEvent, readable.contains(item) { return false }
        switch items[item]?.kind {
        case .observer(let activities, _): return !levels.contains { $0.activity.map(activities.contains) ?? false }
        case .timer: return !levels.contains(where: \.firesTimers) || !due.contains(item)
        default: return true
        }
    }

    private func mayInvalidate(_ item: String) -> Bool {
        // D23: the last source that was checked decides whether the pass polls.
        if levels.contains(where: { $0.collected.last == item }) { return false }
        return !isStranded(item)  // D27
    }

    private func isStranded(_ item: String) -> Bool {
        commonItems.contains(item) && modes(of: item).isEmpty
    }

    private var mayAddCommonMode: Bool {
        // D23: it adds the common items, as `add` does.
        if commonItems.contains(where: isCollected) { return false }
        // D22: CFRunLoop visits each block of a phase once.
        return !levels.contains(where: \.isInBlocks) || !blocks.contains { $0.modes.contains(.common) }
    }

    private func mayRun(_ mode: Mode, _ limit: Limit) -> Bool {
        if levels.count >= Self.deepest { return false }
        if hasTakenEvent { return false }
        // D15: the clock of the timer's other mode has struck too, and only that.
        if firing.contains(where: { members[mode]?.contains($0) == true && modes(of: $0).count > 1 }) { return false }
        // D22: a nested run in a block continues with the blocks that were posted before.
        if hasBlock(for: mode, where: \.isInPhase) { return false }
        // D23: the source that decides whether the pass polls would be performed inside.
        let last = levels.compactMap(\.collected.last)
        if last.contains(where: { members[mode]?.contains($0) == true && signals[$0] != nil }) { return false }
        guard case .milliseconds = limit else { return true }
        let isSignalled = (members[mode] ?? []).contains { signals[$0] != nil }
        return !isSignalled && !hasBlock(for: mode) && readablePorts(in: mode).isEmpty && dueTimers(in: mode).isEmpty
            && !hasWakeUp
    }

    /// D6, D7: a stop takes precedence, and stays pending when its run cannot use it.
    private var mayStop: Bool {
        guard let level = levels.last, !level.isInExit, level.limit == .long else { return false }
        if !level.returns || level.activity == .entry { return true }
        return level.hasWaited && !level.hasHandledSource && level.activity == nil
    }

    /// D20: a wake-up, a timer and a port that wait together. D24: ports that wait together, one of which was served
    /// just before. D15: due timers that leave a wake-up behind. D31: timers that get a date in their own call and are
    /// in other modes, too.
    private var mixesEvents: Bool {
        if redated.keys.contains(where: { modes(of: $0).count > 1 }) { return true }
        return members.keys.contains { mode in
            let ports = readablePorts(in: mode)
            let timers = due.intersection(members[mode] ?? [])
            let waiting = timers.filter { !firing.contains($0) || redated[$0] == true }
            if !ports.isEmpty && !waiting.isEmpty { return true }
            if hasWakeUp && !(ports.isEmpty && waiting.isEmpty) { return true }
            if ports.count > 1, servedModes.contains(mode) || ports.contains(where: { modes(of: $0).count > 1 }) {
                return true
            }
            let leavesWakeUp = timers.count > 1 || timers.contains { isOneShot($0) && modes(of: $0).count > 1 }
            return leavesWakeUp && !hasFarTimer(mode)
        }
    }

    /// Whether CFRunLoop has a timer in the mode for which it sets its clock anew.
    func hasFarTimer(_ mode: Mode) -> Bool {
        (members[mode] ?? []).contains { isTimer($0) && !due.contains($0) }
    }
}
