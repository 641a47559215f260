// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What the bookkeeping learns from the loop: activities and callouts.

extension Bookkeeping {
    private mutating func changeLevel(_ change: (inout Level) -> Void) {
        if !levels.isEmpty { change(&levels[levels.count - 1]) }
    }

    mutating func beginRun(_ mode: Mode, _ limit: Limit, _ returns: Bool) {
        levels.append(Level(mode: mode, limit: limit, returns: returns))
    }

    mutating func endRun() {
        levels.removeLast()
    }

    mutating func beginActivity(_ activity: Activity) {
        endBlocks()
        if activity == .timers { passCount += 1 }
        let passCount = passCount
        changeLevel { level in
            level.activity = activity
            switch activity {
            case .timers:
                level.passes += 1
                (level.lastPassNumber, level.passNumber) = (level.passNumber, passCount)
                level.hasWaited = false
                level.hasHandledSource = false
                level.hasCollected = false
                level.collected = []
                level.firesTimers = false
            case .woke: level.hasWaited = true
            case .exit:
                level.isInExit = true
                level.lastPassNumber = level.passNumber
                level.hasWaited = level.passes > 0
                level.firesTimers = false
                level.collected = []
            case .entry, .sources, .wait: level.collected = []
            }
        }
        if hasTakenWakeUp(at: activity) {
            hasWakeUp = false
            passesBeforeWakeUp = nil
        }
    }

    /// Whether a wait has consumed the wake-up that there may have been.
    private func hasTakenWakeUp(at activity: Activity) -> Bool {
        guard let level = levels.last else { return false }
        let waited = level.lastPassNumber > (passesBeforeWakeUp ?? 0)
        switch activity {
        case .timers: return level.passes > 1 && waited
        case .exit: return level.passes > 0 && waited
        case .woke: return true
        case .entry, .sources, .wait: return false
        }
    }

    /// The observers of an activity have been called.
    ///
    /// - Returns: what the harness has to do; something other than nothing only before a wait.
    mutating func endActivity(_ activity: Activity) -> Need {
        changeLevel { $0.activity = nil }
        guard activity == .wait, let level = levels.last else { return .nothing }
        if case .milliseconds = level.limit { return .nothing }
        guard readablePorts(in: level.mode).isEmpty, dueTimers(in: level.mode).isEmpty else { return .nothing }
        servedModes.remove(level.mode)
        changeLevel { $0.idlePasses += 1 }
        return level.idlePasses < 2 ? .wakeUp : .stop
    }

    mutating func beginCallout(_ item: Item) {
        switch item.kind {
        case .source: beginSource(item)
        case .port:
            endBlocks()
            readable.remove(item.name)
            servedModes.formUnion(modes(of: item.name))
            changeLevel {
                $0.hasWaited = true
                $0.hasHandledSource = true
            }
        case .timer:
            endBlocks()
            firing.insert(item.name)
            redated[item.name] = nil
            changeLevel {
                $0.hasWaited = true
                $0.firesTimers = true
            }
        case .observer: break
        case .block: beginBlock(item.name)
        }
    }

    private mutating func beginSource(_ item: Item) {
        endBlocks()
        if let level = levels.last, !level.hasCollected {
            let signalled = (members[level.mode] ?? []).filter { signals[$0] != nil }
            let sorted = signalled.sorted { key(of: $0) < key(of: $1) }
            changeLevel {
                $0.hasCollected = true
                $0.collected = $0.returns ? [] : sorted
            }
        }
        signals[item.name] = nil
        changeLevel { level in
            level.hasHandledSource = true
            if let index = level.collected.firstIndex(of: item.name) { level.collected.removeFirst(index + 1) }
        }
    }

    private func key(of source: String) -> (Int, Int) {
        (items[source]?.order ?? 0, signals[source] ?? 0)
    }

    private mutating func beginBlock(_ name: String) {
        guard let level = levels.last,
            let index = blocks.firstIndex(where: { $0.name == name && matches($0, level.mode) })
        else { return }
        if !level.isInBlocks || !blocks[index].isInPhase {
            for index in blocks.indices { blocks[index].isInPhase = true }
        }
        blocks.remove(at: index)
        changeLevel {
            $0.isInBlocks = true
            $0.collected = []
            if !$0.hasHandledSource && $0.firesTimers { $0.hasWaited = true }
        }
    }

    /// The block phase of the innermost run is over.
    private mutating func endBlocks() {
        guard let level = levels.last, level.isInBlocks else { return }
        changeLevel { $0.isInBlocks = false }
        if levels.contains(where: \.isInBlocks) { return }
        for index in blocks.indices { blocks[index].isInPhase = false }
    }

    mutating func endCallout(_ item: Item) {
        switch item.kind {
        case .timer(_, let repeats):
            firing.remove(item.name)
            if !repeats {
                due.remove(item.name)
                dropEverywhere(item.name)
            } else if redated[item.name] != true {
                due.remove(item.name)
            }
            redated[item.name] = nil
        case .observer(_, let repeats): if !repeats { dropEverywhere(item.name) }
        case .source, .port, .block: break
        }
    }

    mutating func dropEverywhere(_ name: String) {
        invalid.insert(name)
        for mode in members.keys { members[mode]?.remove(name) }
        commonItems.remove(name)
        ownModes[name] = nil
        signals[name] = nil
    }
}
