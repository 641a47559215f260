// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The blocks that wait to be performed on a loop, in the order in which they were posted.
struct BlockQueue: Sendable {
    struct Entry: Sendable {
        var modes: Set<RunLoopMode>
        var name: String?
        var block: @Sendable () -> Void
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Puts a block behind all others.
    mutating func append(_ block: @escaping @Sendable () -> Void, modes: Set<RunLoopMode>, name: String? = nil) {
        entries.append(Entry(modes: modes, name: name, block: block))
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
