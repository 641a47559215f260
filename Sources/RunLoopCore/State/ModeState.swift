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
    var signalled = ItemHeap<SignalKey>()
    /// Version-1 sources that may be ready.
    var ready = ReadyQueue()
    /// Timers that are armed: all but those that are firing.
    var timers = TimerQueue()
    /// What its waits were like.
    var spins = SpinPredictor()
    /// The sources that the kernel has reported last, by their registrations.
    private(set) var recentReports: [RegistrationIndex] = []
    /// The kernel's set, once a source with a descriptor has been added.
    var descriptors: DescriptorSet?

    init(name: RunLoopMode) {
        self.name = name
    }

    /// Records that the kernel has reported a source.
    mutating func noteReport(of registration: RegistrationIndex) {
        if recentReports.last == registration { return }
        forgetReport(of: registration)
        if recentReports.count == Tuning.recentReportCount { recentReports.removeFirst() }
        recentReports.append(registration)
    }

    /// Forgets a registration that is about to be freed.
    mutating func forgetReport(of registration: RegistrationIndex) {
        recentReports.removeAll { $0 == registration }
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

/// The modes that an item is in, unordered. Mostly there is one, which is stored inline. The list has the size of a
/// pointer, as there may be very many items, and copying it mostly counts no reference.
enum ModeList: Sendable {
    case one(Int32)
    case many([Int])

    init(_ mode: Int) { self = .one(Int32(mode)) }

    /// - Returns: nil when there are none.
    init?(_ modes: [Int]) {
        switch modes.count {
        case 0: return nil
        case 1: self = .one(Int32(modes[0]))
        default: self = .many(modes)
        }
    }

    var all: [Int] {
        switch self {
        case .one(let mode): [Int(mode)]
        case .many(let modes): modes
        }
    }

    func contains(_ mode: Int) -> Bool {
        switch self {
        case .one(let only): Int(only) == mode
        case .many(let modes): modes.contains(mode)
        }
    }

    mutating func append(_ mode: Int) { self = .many(all + [mode]) }
}

/// The observers of a mode: lowest `order` first, equal orders in the order in which they were added.
struct ObserverList: Sendable {
    private var observers: [RunLoopObserver] = []
    private var activities: RunLoopActivity = []

    var isEmpty: Bool { observers.isEmpty }

    mutating func insert(_ observer: RunLoopObserver) {
        let index = observers.firstIndex { $0.order > observer.order } ?? observers.endIndex
        observers.insert(observer, at: index)
        activities.formUnion(observer.activities)
    }

    mutating func remove(_ id: ItemID) {
        observers.removeAll { $0.id == id }
        activities = observers.reduce(into: []) { $0.formUnion($1.activities) }
    }

    /// The observers of an activity, as they are now.
    func observers(of activity: RunLoopActivity) -> [RunLoopObserver] {
        activities.contains(activity) ? observers.filter { $0.activities.contains(activity) } : []
    }
}
