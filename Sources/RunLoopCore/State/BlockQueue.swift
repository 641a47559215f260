// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Each entry has a number that grows with the order of posting. Each mode has a line of the numbers that wait for it,
// the jobs have one of their own; an entry for several modes is in several lines. What waits for a mode is the first of
// the mode's own line, that of the common modes and that of the jobs. So nothing here costs more because of what waits
// for other modes.

/// The blocks and the jobs of actors and tasks that wait to be performed on a loop, in the order in which they were
/// posted.
struct BlockQueue: Sendable {
    struct Entry: Sendable {
        /// The request that it calls; nil for a block that nobody can take back.
        var id: ItemID?
        /// Each mode once.
        var modes: [RunLoopMode]
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

    private var items: [UInt64: Item] = [:]
    private var requests: [ItemID: UInt64] = [:]
    /// A mode for which nothing waits has no line, so that names do not add up; the default mode keeps its memory.
    private var lines: [RunLoopMode: BlockFIFO] = [:]
    private var jobs = BlockFIFO()
    /// The number of what was posted last.
    private(set) var lastStamp: UInt64 = 0
    /// What the queue has cost so far, in looks at entries: what tests measure costs by.
    private(set) var steps = 0

    var isEmpty: Bool { items.isEmpty }
    var jobCount: Int { jobs.count }
    /// How many numbers the lines keep.
    var lineLength: Int { lines.values.reduce(jobs.length) { $0 + $1.length } }

    /// Puts a block behind all others.
    mutating func append(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, modes: [RunLoopMode], name: String? = nil
    ) {
        let modes = modes.count > 1 ? Array(Set(modes)) : modes
        lastStamp += 1
        items[lastStamp] = .block(Entry(id: id, modes: modes, name: name, block: block))
        if let id { requests[id] = lastStamp }
        for mode in modes { lines[mode, default: BlockFIFO()].append(lastStamp) }
    }

    /// Puts a job behind all others.
    mutating func append(_ job: UnownedJob, _ kind: JobKind) {
        lastStamp += 1
        items[lastStamp] = .job(job, kind)
        jobs.append(lastStamp)
    }

    /// Takes out the blocks of requests, whatever their modes; the others keep their places.
    mutating func remove(_ ids: Set<ItemID>) -> [Item] {
        ids.compactMap { requests[$0] }.compactMap { remove($0) }
    }

    /// Whether something waits for the mode. Whether the mode is common counts now, not when the block was posted.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - isCommon: whether it is a common mode now.
    ///   - admitsJobs: whether jobs count.
    /// - Returns: whether `takeFirst` would find something.
    func hasBlock(for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true) -> Bool {
        if isEmpty { return false }
        if hasLine(mode) { return true }
        return isCommon && (admitsJobs && !jobs.isEmpty || hasLine(.common))
    }

    private func hasLine(_ mode: RunLoopMode) -> Bool {
        lines[mode].map { !$0.isEmpty } ?? false
    }

    /// Takes out the first that waits for the mode; the others keep their places.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - isCommon: whether it is a common mode now.
    ///   - admitsJobs: whether a job may be taken.
    ///   - limit: the number of the last one that may be taken.
    /// - Returns: what was taken; nil when nothing waits.
    mutating func takeFirst(
        for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true, upTo limit: UInt64 = .max
    ) -> Item? {
        if isEmpty { return nil }
        var first = lines[mode]?.first(in: items, &steps) ?? .max
        if isCommon, let stamp = lines[.common]?.first(in: items, &steps) { first = min(first, stamp) }
        if isCommon, admitsJobs, let stamp = jobs.first(in: items, &steps) { first = min(first, stamp) }
        return first <= limit ? remove(first) : nil
    }

    /// Takes out the first job.
    mutating func takeFirstJob() -> Item? {
        jobs.first(in: items, &steps).flatMap { remove($0) }
    }

    private mutating func remove(_ stamp: UInt64) -> Item? {
        guard let item = items.removeValue(forKey: stamp) else { return nil }
        switch item {
        case .block(let entry):
            if let id = entry.id { requests[id] = nil }
            for mode in entry.modes { leave(mode, stamp) }
        case .job: jobs.didRemove(stamp, in: items, &steps)
        }
        // The memory of a time with many entries goes with the last of them.
        if items.isEmpty, items.capacity > 128 {
            items = [:]
            requests = [:]
        }
        return item
    }

    private mutating func leave(_ mode: RunLoopMode, _ stamp: UInt64) {
        lines[mode]?.didRemove(stamp, in: items, &steps)
        if mode != .default, !hasLine(mode) { lines[mode] = nil }
    }
}
