// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What becomes of an action.

extension Bookkeeping {
    /// Writes an action into the books.
    ///
    /// - Returns: false when it would leave a wake-up in CFRunLoop (D15).
    mutating func apply(_ action: Action) -> Bool {
        switch action {
        case .add(let item, let mode): add(item, mode)
        case .remove(let item, let mode): return remove(item, mode)
        case .invalidate(let item): return invalidate(item)
        case .signal(let item):
            if !invalid.contains(item), signals[item] == nil {
                lastSignal += 1
                signals[item] = lastSignal
            }
        case .write(let item): readable.insert(item)
        case .setDate(let item, let date): setDate(item, date)
        case .post(let item):
            if case .block(let modes) = items[item]?.kind { blocks.append(Block(name: item, modes: modes)) }
        case .addCommonMode(let mode):
            if commonModes.insert(mode).inserted, !commonItems.isEmpty {
                members[mode, default: []].formUnion(commonItems)
            }
        case .stop, .wakeUp:
            guard let level = levels.last, !level.hasWaited else { return true }
            hasWakeUp = true
            if level.passes == 0 { passesBeforeWakeUp = passCount }
        case .run, .askContains, .askValid, .askCurrentMode, .askModes: break
        }
        return true
    }

    private mutating func add(_ item: String, _ mode: Mode) {
        if invalid.contains(item) { return }
        if mode == .common {
            commonItems.insert(item)
            for mode in commonModes { members[mode, default: []].insert(item) }
        } else {
            members[mode, default: []].insert(item)
            ownModes[item, default: []].insert(mode)
        }
    }

    private mutating func remove(_ item: String, _ mode: Mode) -> Bool {
        guard mode == .common else {
            ownModes[item]?.remove(mode)
            guard members[mode]?.remove(item) != nil else { return true }
            return !due.contains(item) || hasFarTimer(mode)
        }
        guard commonItems.remove(item) != nil else { return true }
        var leavesNoTrace = true
        for mode in commonModes where members[mode]?.remove(item) != nil {
            if due.contains(item), !hasFarTimer(mode) { leavesNoTrace = false }
        }
        return leavesNoTrace
    }

    private mutating func invalidate(_ item: String) -> Bool {
        let modes = modes(of: item)
        dropEverywhere(item)
        guard due.contains(item), !firing.contains(item) else { return true }
        due.remove(item)
        return modes.allSatisfy { hasFarTimer($0) }
    }

    private mutating func setDate(_ timer: String, _ date: FireDate) {
        if invalid.contains(timer) { return }
        if firing.contains(timer) {
            redated[timer] = date == .due
        } else if date == .due {
            due.insert(timer)
        } else {
            due.remove(timer)
        }
    }
}
