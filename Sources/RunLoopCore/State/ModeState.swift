// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a loop knows about one mode.
struct ModeState: Sendable {
    struct SignalKey: Comparable, Sendable {
        var order: Int
        var stamp: UInt64

        static func < (left: SignalKey, right: SignalKey) -> Bool {
            (left.order, left.stamp) < (right.order, right.stamp)
        }
    }

    let name: RunLoopMode
    /// How many items keep a run going.
    private(set) var lastingCount = 0
    private(set) var observers = ObserverList()
    /// Version-0 sources that were signalled.
    var signalled = IndexedHeap<SignalKey>()
    /// Version-1 sources that may be ready.
    var ready = ReadyQueue()
    /// Timers that are armed: all but those that are firing.
    var timers = TimerQueue()
    /// What its waits were like.
    var spins = SpinPredictor()
    /// The sources whose descriptors were reported last.
    var recentReports = RecentReports()
    /// The kernel's set, once a source with a descriptor has been added.
    var descriptors: DescriptorSet?

    init(name: RunLoopMode) {
        self.name = name
    }

    /// Counts an item that is new here, or has left.
    mutating func count(_ item: RunLoopItem, _ difference: Int) {
        if item.keepsModeAlive { lastingCount += difference }
    }

    /// Adds an item that is not registered in the table, and is new here.
    mutating func insert(_ item: RunLoopItem) {
        count(item, 1)
        if case .observer(let observer) = item { observers.insert(observer) }
    }

    /// Removes an item that is not registered in the table, and is here.
    mutating func remove(_ item: RunLoopItem) {
        count(item, -1)
        switch item {
        case .observer: observers.remove(item.id)
        case .timer: timers.disarm(item.id)
        case .source: signalled.remove(item.id)
        }
    }
}
