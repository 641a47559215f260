// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Ends the waits of tasks whose time is up.
///
/// A task's sleep that is cancelled stays with the Swift runtime until its time is up, a few hundred bytes each. A
/// process that sends a hundred thousand requests a second, with limits of seconds, would hold all those that begin
/// within the limit. So all waits share the sleeps here: a new one begins only for an alarm that is due before all
/// current sleeps end. Only alarms that are each due before all others cost a sleep each.
package final class AlarmClock: Sendable {
    private struct State: Sendable {
        var deadlines = ItemHeap<MonotonicInstant>()
        var actions: [ItemID: @Sendable () -> Void] = [:]
        /// When the current sleeps end.
        var sleeps = ItemHeap<MonotonicInstant>()

        /// A sleep to begin; nil when the current ones suffice.
        mutating func nextSleep() -> Sleep? {
            guard let first = deadlines.first?.key, first < sleeps.first?.key ?? .distantFuture else { return nil }
            let sleep = (id: ItemID(), end: first)
            sleeps.set(sleep.id, first)
            return sleep
        }
    }

    private typealias Sleep = (id: ItemID, end: MonotonicInstant)

    /// The process's clock.
    package static let shared = AlarmClock()

    private let state = Mutex(State())

    package init() {}

    /// How many alarms are set, and how many sleeps wait for them.
    package var counts: (alarms: Int, sleeps: Int) { state.withLock { ($0.deadlines.count, $0.sleeps.count) } }

    /// Sets an alarm: the action is called when it is due, on a thread of Swift's pool. It must not block.
    ///
    /// - Returns: its number, which stops it; nil for a time that never comes.
    package func set(for deadline: MonotonicInstant, _ action: @escaping @Sendable () -> Void) -> ItemID? {
        if deadline == .distantFuture { return nil }
        let (alarm, sleep) = state.withLock { state in
            let alarm = ItemID()
            state.deadlines.set(alarm, deadline)
            state.actions[alarm] = action
            return (alarm, state.nextSleep())
        }
        begin(sleep)
        return alarm
    }

    /// Stops an alarm, whose action may be running just now.
    package func stop(_ alarm: ItemID?) {
        guard let alarm else { return }
        let action = state.withLock { state in
            state.deadlines.remove(alarm)
            return state.actions.removeValue(forKey: alarm)
        }
        withExtendedLifetime(action) {}  // what it holds is released without the lock
    }

    private func begin(_ sleep: Sleep?) {
        guard let sleep else { return }
        Task.detached {
            try? await Task.sleep(for: MonotonicInstant.now.duration(to: sleep.end), clock: .suspending)
            self.didSleep(sleep)
        }
    }

    private func didSleep(_ sleep: Sleep) {
        let now = MonotonicInstant.now
        let (due, next) = state.withLock { state in
            state.sleeps.remove(sleep.id)
            var due: [@Sendable () -> Void] = []
            while let first = state.deadlines.first, first.key <= now {
                state.deadlines.remove(first.id)
                if let action = state.actions.removeValue(forKey: first.id) { due.append(action) }
            }
            return (due, state.nextSleep())
        }
        begin(next)
        for action in due { action() }
    }
}
