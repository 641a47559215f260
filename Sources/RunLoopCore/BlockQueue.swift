// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The blocks and the jobs of actors and tasks that wait to be performed on a loop, in the order in which they were posted.
struct BlockQueue: Sendable {
    struct Entry: Sendable {
        /// The request that it calls; nil for a block that nobody can take back.
        var id: ItemID?
        var modes: Set<RunLoopMode>
        var name: String?
        var block: @Sendable () -> Void
    }

    enum Item: Sendable {
        case block(Entry)
        /// Jobs are for the common modes. They must be run: whoever drops one leaves a task that waits for ever.
        case job(UnownedJob, JobKind)
    }

    enum JobKind: Sendable {
        /// A piece of the code of an actor whose executor is the loop.
        case actor
        /// A piece of the code of a task that prefers the loop.
        case task
    }

    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }

    var jobCount: Int { items.count { if case .job = $0 { true } else { false } } }

    /// Puts a block behind all others.
    mutating func append(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, modes: Set<RunLoopMode>, name: String? = nil
    ) {
        items.append(.block(Entry(id: id, modes: modes, name: name, block: block)))
    }

    /// Takes out the blocks of requests, whatever their modes; the others keep their places.
    mutating func remove(_ ids: Set<ItemID>) -> [Item] {
        take {
            guard case .block(let entry) = $0, let id = entry.id else { return false }
            return ids.contains(id)
        }
    }

    /// Puts a job behind all others.
    mutating func append(_ job: UnownedJob, _ kind: JobKind) {
        items.append(.job(job, kind))
    }

    /// Whether something waits for the mode. Whether the mode is common counts now, not when the block was posted.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - isCommon: whether it is a common mode now.
    ///   - admitsJobs: whether jobs count.
    /// - Returns: whether `take` would find something.
    func hasBlock(for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true) -> Bool {
        items.contains { Self.matches($0, mode, isCommon, admitsJobs) }
    }

    /// Takes out what waits for the mode; the others keep their places.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - isCommon: whether it is a common mode now.
    ///   - admitsJobs: whether jobs may be taken.
    /// - Returns: what was taken, in the order of posting.
    mutating func take(for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true) -> [Item] {
        take { Self.matches($0, mode, isCommon, admitsJobs) }
    }

    /// Takes out all jobs.
    mutating func takeJobs() -> [Item] {
        take { if case .job = $0 { true } else { false } }
    }

    private mutating func take(where matches: (Item) -> Bool) -> [Item] {
        if items.isEmpty { return [] }
        if items.allSatisfy(matches) {
            defer { items = [] }
            return items
        }
        let taken = items.filter(matches)
        if !taken.isEmpty { items.removeAll(where: matches) }
        return taken
    }

    private static func matches(_ item: Item, _ mode: RunLoopMode, _ isCommon: Bool, _ admitsJobs: Bool) -> Bool {
        switch item {
        case .block(let entry): entry.modes.contains(mode) || isCommon && entry.modes.contains(.common)
        case .job: isCommon && admitsJobs
        }
    }
}
