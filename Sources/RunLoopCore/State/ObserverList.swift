// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The observers of a mode: lowest `order` first, equal orders in the order in which they were added.
struct ObserverList: Sendable {
    private var observers: [RunLoopObserver] = []
    private var activities: RunLoopActivity = []

    var isEmpty: Bool { observers.isEmpty }

    mutating func insert(_ observer: RunLoopObserver) {
        let place = observers.firstIndex { $0.order > observer.order } ?? observers.endIndex
        observers.insert(observer, at: place)
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
