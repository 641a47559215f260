// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Others may look at the messages of a port whose owner agrees. What they are shown is offered to the kernel once, when
// the message is taken: where there is no room it is left out, so a slow watcher keeps nobody waiting.

import Synchronization

/// A connection over which somebody watches a port's messages.
struct PortWatcher: Sendable {
    let number: UInt64
    let connection: WeakReference<SocketConnection>
    /// How many bytes of each message are shown.
    let byteLimit: Int
}

extension LocalPort {
    /// Most watchers of a port.
    package static let watcherLimit = 16

    /// Adds a watcher.
    ///
    /// - Returns: whether it may watch.
    func addWatcher(_ connection: SocketConnection, byteLimit: Int) -> Bool {
        forgetWatchers(besides: connection)
        return state.withLock { state in
            guard state.extras.allowsWatching, !state.mailbox.isDead,
                state.extras.watchers.count < Self.watcherLimit
            else { return false }
            state.mailbox.reclaim()  // each message that is taken is shown from now on
            state.extras.lastWatcher += 1
            let watcher = PortWatcher(
                number: state.extras.lastWatcher, connection: WeakReference(object: connection), byteLimit: byteLimit)
            state.extras.watchers.append(watcher)
            return true
        }
    }

    /// Forgets watchers that have gone, and a connection that watches already. Connections are looked at, and let go,
    /// without the lock.
    private func forgetWatchers(besides connection: SocketConnection? = nil) {
        let watchers = state.withLock { $0.extras.watchers }
        let gone = watchers.filter { watcher in
            guard let other = watcher.connection.object else { return true }
            return other === connection || other.isClosed
        }
        let numbers = Set(gone.map(\.number))
        if !numbers.isEmpty { state.withLock { $0.extras.watchers.removeAll { numbers.contains($0.number) } } }
    }

    /// Shows a message that was taken to those who watch.
    func show(_ message: MachMessage) {
        let (watchers, number) = state.withLock { state in
            state.extras.watchedCount += 1
            return (state.extras.watchers, state.extras.watchedCount)
        }
        var hasGone = false
        for watcher in watchers {
            guard let connection = watcher.connection.object, !connection.isClosed else {
                hasGone = true
                continue
            }
            let shown = WatchedMessage(message, number: number, byteLimit: watcher.byteLimit)
            connection.offerAside(shown.packet)
        }
        if hasGone { forgetWatchers() }
    }
}
