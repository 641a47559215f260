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
    var ready = ReadyList()
    /// Timers that are armed: all but those that are firing.
    var timers = TimerQueue()
    /// What its waits were like.
    var spins = SpinPredictor()
    /// The sources whose descriptors were reported last.
    var recentReports = RecentReports()
    /// Which registration in `descriptors` belongs to which source.
    var watches: [ItemID: DescriptorWatch] = [:]
    /// The kernel's set, once a source with a descriptor has been here.
    var descriptors: DescriptorSet?

    init(name: RunLoopMode) {
        self.name = name
    }

    /// Puts an item in, which is new here.
    mutating func insert(_ item: RunLoopItem) {
        if item.keepsModeAlive { lastingCount += 1 }
        switch item {
        case .observer(let observer): observers.insert(observer)
        case .source(let source) where source.isPortBased: ready.insert(source.id, order: source.order)
        case .source, .timer: break
        }
    }

    /// Takes out an item that is here.
    ///
    /// - Returns: the registration of its descriptor, for the caller to end.
    mutating func remove(_ item: RunLoopItem) -> DescriptorWatch? {
        if item.keepsModeAlive { lastingCount -= 1 }
        switch item {
        case .observer: observers.remove(item.id)
        case .timer: timers.disarm(item.id)
        case .source:
            signalled.remove(item.id)
            ready.remove(item.id)
        }
        return watches.removeValue(forKey: item.id)
    }
}
