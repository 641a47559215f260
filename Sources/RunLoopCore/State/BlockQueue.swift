// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Each entry has a number that grows with the order of posting. Each mode has a queue of the numbers that wait for it,
// and the jobs have one of their own; an entry for several modes is in several queues. The next entry for a mode is the
// first of the mode's own queue, the queue of the common modes and that of the jobs. So entries that wait for other
// modes cost nothing here.

/// The blocks and the jobs of actors and tasks that wait to be performed on a loop, in the order in which they were
/// posted.
struct BlockQueue: Sendable {
    struct Entry: Sendable {
        /// The request that it calls; nil for a block that cannot be cancelled.
        var id: ItemID?
        /// Each mode once.
        var modes: [RunLoopMode]
        var name: String?
        var block: @Sendable () -> Void
    }

    enum Item: Sendable {
        case block(Entry)
        /// Jobs are for the common modes. They must be run: dropping one leaves its task suspended forever.
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
    /// A mode for which nothing waits has no queue, so that unused names do not accumulate; the default mode's queue
    /// stays.
    private var lines: [RunLoopMode: BlockFIFO] = [:]
    private var jobs = BlockFIFO()
    /// The number of the last entry that was posted.
    private(set) var lastStamp: UInt64 = 0
    /// The cost of the queue so far, in entries examined: tests measure costs by it.
    private(set) var steps = 0

    var isEmpty: Bool { items.isEmpty }
    var jobCount: Int { jobs.count }
    /// How many numbers the queues store.
    var lineLength: Int { lines.values.reduce(jobs.length) { $0 + $1.length } }

    mutating func append(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, modes: [RunLoopMode], name: String? = nil
    ) {
        let modes = modes.count > 1 ? Array(Set(modes)) : modes
        lastStamp += 1
        items[lastStamp] = .block(Entry(id: id, modes: modes, name: name, block: block))
        if let id { requests[id] = lastStamp }
        for mode in modes { lines[mode, default: BlockFIFO()].append(lastStamp) }
    }

    mutating func append(_ job: UnownedJob, _ kind: JobKind) {
        lastStamp += 1
        items[lastStamp] = .job(job, kind)
        jobs.append(lastStamp)
    }

    /// Removes the blocks of requests, whatever their modes; the others keep their order.
    mutating func remove(_ ids: Set<ItemID>) -> [Item] {
        ids.compactMap { requests[$0] }.compactMap { remove($0) }
    }

    /// Whether `dequeueFirst` would find something. What counts is whether the mode is common now, not when the block
    /// was posted.
    func hasBlock(for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true) -> Bool {
        if isEmpty { return false }
        if hasLine(mode) { return true }
        return isCommon && (admitsJobs && !jobs.isEmpty || hasLine(.common))
    }

    private func hasLine(_ mode: RunLoopMode) -> Bool {
        lines[mode].map { !$0.isEmpty } ?? false
    }

    /// Dequeues the first entry that waits for the mode, and whose number is not higher than `limit`; the others keep
    /// their order.
    mutating func dequeueFirst(
        for mode: RunLoopMode, isCommon: Bool, admitsJobs: Bool = true, upTo limit: UInt64 = .max
    ) -> Item? {
        if isEmpty { return nil }
        var first = lines[mode]?.first(in: items, &steps) ?? .max
        if isCommon, let stamp = lines[.common]?.first(in: items, &steps) { first = min(first, stamp) }
        if isCommon, admitsJobs, let stamp = jobs.first(in: items, &steps) { first = min(first, stamp) }
        return first <= limit ? remove(first) : nil
    }

    mutating func dequeueFirstJob() -> Item? {
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
        // The memory that many entries needed is released with the last of them.
        if items.isEmpty, items.capacity > Tuning.idleBlockCapacity {
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

/// The numbers of the entries that wait for one mode, in the order of posting.
///
/// An entry that was removed elsewhere leaves its number as a gap. A gap does not count, and is dropped when it comes
/// first. When there are more gaps than entries, and more than a few, all gaps are dropped: each removal costs
/// amortized O(1).
struct BlockFIFO: Sendable {
    private var stamps: [UInt64] = []
    /// The index of the first number that was not dropped.
    private var head = 0
    /// How many of them still wait.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// How many numbers are stored, gaps included.
    var length: Int { stamps.count }

    mutating func append(_ stamp: UInt64) {
        stamps.append(stamp)
        count += 1
    }

    /// The first number that still waits, as `items` do. Counts the numbers that it examines in `steps`.
    mutating func first(in items: [UInt64: BlockQueue.Item], _ steps: inout Int) -> UInt64? {
        if isEmpty { return nil }
        while head < stamps.count {
            steps += 1
            if items[stamps[head]] != nil { return stamps[head] }
            head += 1
        }
        return nil
    }

    /// Records that a number of this queue no longer waits; `items` still do.
    mutating func didRemove(_ stamp: UInt64, in items: [UInt64: BlockQueue.Item], _ steps: inout Int) {
        steps += 1
        count -= 1
        if head < stamps.count, stamps[head] == stamp { head += 1 }
        guard isEmpty || stamps.count > 2 * count + Tuning.gapLimit else { return }
        if isEmpty {
            stamps.removeAll(keepingCapacity: stamps.capacity <= 2 * Tuning.gapLimit)
        } else {
            steps += stamps.count - head
            stamps = stamps[head...].filter { items[$0] != nil }
        }
        head = 0
    }
}

extension RunLoopState {
    /// Holds a request until it is over.
    ///
    /// - Returns: false when the thread has ended: nothing was done.
    mutating func insert(_ request: PerformRequest) -> Bool {
        if hasEnded { return false }
        requests.insert(request)
        return true
    }

    /// Appends a block to the queue.
    ///
    /// - Returns: whether a sleeping loop must be woken for it.
    mutating func post(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, in modes: [RunLoopMode], name: String? = nil
    ) -> Bool {
        for mode in modes { noteBlock(in: mode) }
        blocks.append(block, id: id, modes: modes, name: name)
        return mustWake(forBlockIn: modes)
    }

    /// Dequeues the next of the blocks and jobs for a mode that had been posted when the first was dequeued.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - last: the number of the last one to perform; nil before the first.
    ///   - isJob: whether the one that was dequeued last is a job.
    /// - Returns: what to perform; nil when all have been performed.
    mutating func dequeueBlock(for mode: Int, upTo last: inout UInt64?, afterJob isJob: inout Bool) -> BlockQueue.Item?
    {
        if isJob { isRunningJob = false }
        let limit = last ?? blocks.lastStamp
        let item = dequeueBlock(for: mode, upTo: limit)
        last = limit
        isJob = if case .job = item { true } else { false }
        if isJob { isRunningJob = true }
        return item
    }
}
