// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The loops that an item is in. A loop leaves the list when the item is removed from it or invalidated, or when its
/// thread ends, so neither side holds a reference longer than it needs it.
struct LoopMembership: Sendable {
    /// Nil when the item is invalid. It has the size of a pointer, as there may be very many items.
    private(set) var list: SmallList<ThreadRunLoop>? = SmallList()

    var loops: SmallList<ThreadRunLoop> { list ?? SmallList() }

    var isValid: Bool { list != nil }

    mutating func insert(_ loop: ThreadRunLoop) {
        if let list, !list.contains(loop) { self.list?.append(loop) }
    }

    mutating func remove(_ loop: ThreadRunLoop) {
        list?.removeAll { $0 == loop }
    }

    /// - Returns: the loops that it must leave; nil when it was already invalid.
    mutating func invalidate() -> SmallList<ThreadRunLoop>? {
        list.take()
    }

    /// Adds an item to a loop. The caller holds the item's lock, which comes before the loop's.
    ///
    /// - Returns: the modes in which it is new.
    mutating func add(_ item: RunLoopItem, to loop: ThreadRunLoop, _ mode: RunLoopMode) -> [Int] {
        guard isValid else { return [] }
        let (entered, isHere) = loop.state.withLock { state in
            let entered = state.add(item, to: mode)
            return (entered, state.contains(item.id))
        }
        if isHere { insert(loop) }
        return entered
    }

    /// Removes an item from a mode of a loop. The caller holds the item's lock.
    ///
    /// - Returns: the modes that it has left.
    mutating func remove(_ id: ItemID, from loop: ThreadRunLoop, _ mode: RunLoopMode) -> [RunLoopState.Removal] {
        let (departures, isGone) = loop.removeItem(id, from: mode)
        if isGone { remove(loop) }
        return departures
    }
}
