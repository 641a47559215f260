// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The armed timers of a mode, in two heaps: by fire date, which says what is due, and by the latest date that the
/// tolerance allows, which says how long the loop may sleep. The loop sleeps until the earliest of the latest dates and
/// then fires everything that is due, so timers whose tolerances overlap share one wake-up.
struct TimerQueue: Sendable {
    struct Key: Comparable, Sendable {
        var date: MonotonicInstant
        var id: ItemID

        static func < (left: Key, right: Key) -> Bool {
            (left.date, left.id) < (right.date, right.id)
        }
    }

    private var byFireDate = ItemHeap<Key>()
    private var byLatestDate = ItemHeap<Key>()

    var isEmpty: Bool { byFireDate.isEmpty }

    var nextFireDate: MonotonicInstant? { byFireDate.first?.key.date }

    /// The date at which the loop must be awake for a timer at the latest.
    var wakeDate: MonotonicInstant? { byLatestDate.first?.key.date }

    /// The cost of the queue so far, in entries examined.
    var steps: Int { byFireDate.steps + byLatestDate.steps }

    func contains(_ id: ItemID) -> Bool {
        byFireDate.contains(id)
    }

    /// Arms a timer, or changes its dates.
    mutating func arm(_ id: ItemID, _ schedule: TimerSchedule) {
        byFireDate.set(id, Key(date: schedule.fireDate, id: id))
        byLatestDate.set(id, Key(date: schedule.latestDate, id: id))
    }

    mutating func disarm(_ id: ItemID) {
        byFireDate.remove(id)
        byLatestDate.remove(id)
    }

    /// Whether the first date has come. Without a date the clock is not read.
    func isDue(at now: @autoclosure () -> MonotonicInstant) -> Bool {
        guard let nextFireDate else { return false }
        return nextFireDate <= now()
    }

    /// The timers whose date has come, earliest first, equal dates in the order of creation.
    mutating func due(at now: MonotonicInstant) -> [ItemID] {
        byFireDate.entries(notAfter: Key(date: now, id: ItemID(rawValue: .max))).sorted { $0.key < $1.key }.map(\.id)
    }
}
