// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The blocks that wait to be performed on a loop, in the order in which they were posted.
struct BlockQueue: Sendable {
    struct Entry: Sendable {
        /// The request that it calls; nil for a block that nobody can take back.
        var id: ItemID?
        var modes: Set<RunLoopMode>
        var name: String?
        var block: @Sendable () -> Void
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Puts a block behind all others.
    mutating func append(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, modes: Set<RunLoopMode>, name: String? = nil
    ) {
        entries.append(Entry(id: id, modes: modes, name: name, block: block))
    }

    /// Takes out the blocks of requests, whatever their modes; the others keep their places.
    mutating func remove(_ ids: Set<ItemID>) -> [Entry] {
        let isOfThese = { (entry: Entry) in entry.id.map { ids.contains($0) } ?? false }
        let removed = entries.filter(isOfThese)
        if !removed.isEmpty { entries.removeAll(where: isOfThese) }
        return removed
    }

    /// Whether a block waits for the mode. Whether the mode is common counts now, not when the block was posted.
    func hasBlock(for mode: RunLoopMode, isCommon: Bool) -> Bool {
        entries.contains { Self.matches($0, mode, isCommon) }
    }

    /// Takes out the blocks for the mode; the others keep their places.
    mutating func take(for mode: RunLoopMode, isCommon: Bool) -> [Entry] {
        if entries.isEmpty { return [] }
        let taken = entries.filter { Self.matches($0, mode, isCommon) }
        if !taken.isEmpty { entries.removeAll { Self.matches($0, mode, isCommon) } }
        return taken
    }

    private static func matches(_ entry: Entry, _ mode: RunLoopMode, _ isCommon: Bool) -> Bool {
        entry.modes.contains(mode) || isCommon && entry.modes.contains(.common)
    }
}
