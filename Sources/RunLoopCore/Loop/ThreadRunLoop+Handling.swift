// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension ThreadRunLoop {
    /// Calls the observers of an activity: those that the loop has now, except those that are being called already.
    func notify(_ activity: RunLoopActivity, in mode: Int) {
        activityBegins(activity)
        for observer in state.withLock({ $0.modes[mode].observers.observers(of: activity) }) {
            guard observer.isValid, state.withLock({ $0.beginObserver(observer.id, in: mode) }) else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION(observer, activity)
            if !observer.repeats { observer.invalidate() }
            state.withLock { _ = $0.firingObservers.remove(observer.id) }
        }
    }

    /// Calls the blocks and runs the jobs that wait for the mode now; those that they post wait for the next time.
    ///
    /// Each is dequeued just before it is called. So a run that is nested inside one finds the rest, and continues with
    /// it.
    func performBlocks(in mode: Int) {
        var phase = BlockPass()
        while let item = state.withLock({ $0.takeBlock(of: &phase, for: mode) }) { perform(item) }
    }

    /// Performs the custom sources that are signalled now, or the first of them.
    ///
    /// - Returns: whether there was one.
    func performSignalledSources(in mode: Int, onlyFirst: Bool) -> Bool {
        if onlyFirst { return performFirstSignalledSource(in: mode) }
        var hasHandled = false
        for source in state.withLock({ $0.signalledSources(in: mode) }) {
            let isHere = state.withLock { $0.takeSignal(source.id, in: mode) }
            guard isHere, source.takeSignal() else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(source)
            hasHandled = true
        }
        return hasHandled
    }

    private func performFirstSignalledSource(in mode: Int) -> Bool {
        while let source = state.withLock({ $0.takeFirstSignalled(in: mode) }) {
            // Another mode or loop may have performed it.
            guard source.takeSignal() else { continue }
            RUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION(source)
            return true
        }
        return false
    }
}

extension RunLoopState {
    mutating func beginObserver(_ id: ItemID, in mode: Int) -> Bool {
        isMember(id, of: mode) && firingObservers.insert(id).inserted
    }

    mutating func takeFirstSignalled(in mode: Int) -> RunLoopSource? {
        guard let first = modes[mode].signalled.first, takeSignal(first.id, in: mode) else { return nil }
        return customSource(first.id, in: mode)
    }

    /// Removes a custom source from the mode's list of signalled sources, and from those of its other modes.
    ///
    /// - Returns: false when it is no longer on the mode's list.
    mutating func takeSignal(_ id: ItemID, in mode: Int) -> Bool {
        guard modes[mode].signalled.remove(id) != nil else { return false }
        for index in places(of: id) { modes[index].signalled.remove(id) }
        return true
    }

    /// The custom sources that are signalled, in the order in which they are to be performed.
    mutating func signalledSources(in mode: Int) -> [RunLoopSource] {
        if modes[mode].signalled.isEmpty { return [] }
        let last = ModeState.SignalKey(order: .max, stamp: .max)
        return modes[mode].signalled.entries(notAfter: last).sorted { $0.key < $1.key }
            .compactMap { customSource($0.id, in: mode) }
    }
}
