// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a loop knows about one mode.
struct ModeState: Sendable {
    struct Member: Sendable {
        var item: RunLoopItem
        /// Added to this very mode.
        var isOwn: Bool
        /// Here because it was added to the common modes.
        var isCommon: Bool
    }

    struct SignalKey: Comparable, Sendable {
        var order: Int
        var stamp: UInt64

        static func < (left: SignalKey, right: SignalKey) -> Bool {
            (left.order, left.stamp) < (right.order, right.stamp)
        }
    }

    let name: RunLoopMode
    private(set) var members: [ItemID: Member] = [:]
    /// How many members keep a run going.
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
    /// Which registration in `descriptors` belongs to which source.
    var watches: [ItemID: DescriptorWatch] = [:]
    /// The kernel's set, once a source with a descriptor has been here.
    var descriptors: DescriptorSet?

    init(name: RunLoopMode) {
        self.name = name
    }

    /// Puts an item in.
    ///
    /// - Returns: whether it is new here.
    mutating func insert(_ item: RunLoopItem, asCommon: Bool) -> Bool {
        if members[item.id] != nil {
            if asCommon { members[item.id]?.isCommon = true } else { members[item.id]?.isOwn = true }
            return false
        }
        members[item.id] = Member(item: item, isOwn: !asCommon, isCommon: asCommon)
        if item.keepsModeAlive { lastingCount += 1 }
        switch item {
        case .observer(let observer): observers.insert(observer)
        case .source(let source) where source.isPortBased: ready.insert(source.id, order: source.order)
        case .source, .timer: break
        }
        return true
    }

    /// Takes an item out.
    ///
    /// - Returns: the registration of its descriptor, for the caller to end; `isMember` is false when it was not here.
    mutating func remove(_ id: ItemID) -> (isMember: Bool, watch: DescriptorWatch?) {
        guard let member = members.removeValue(forKey: id) else { return (false, nil) }
        if member.item.keepsModeAlive { lastingCount -= 1 }
        switch member.item {
        case .observer: observers.remove(id)
        case .timer: timers.disarm(id)
        case .source:
            signalled.remove(id)
            ready.remove(id)
        }
        return (true, watches.removeValue(forKey: id))
    }

    /// Says that an item is no longer here on behalf of the common modes.
    ///
    /// - Returns: whether it has no reason left to be here.
    mutating func endCommonMembership(_ id: ItemID) -> Bool {
        guard var member = members[id] else { return false }
        member.isCommon = false
        members[id] = member
        return !member.isOwn
    }

    func source(_ id: ItemID) -> RunLoopSource? {
        guard case .source(let source) = members[id]?.item else { return nil }
        return source
    }

    func timer(_ id: ItemID) -> RunLoopTimer? {
        guard case .timer(let timer) = members[id]?.item else { return nil }
        return timer
    }
}
