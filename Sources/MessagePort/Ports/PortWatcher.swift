// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Other processes may watch the messages of a port whose owner allows it. Each message is offered to the kernel once,
// when it is dequeued: where there is no room it is left out, so a slow watcher delays no sender.

/// A connection over which a process watches a port's messages.
struct PortWatcher: Sendable {
    let connection: WeakReference<SocketConnection>
    /// How many bytes of each message it gets.
    let byteLimit: Int
}

extension LocalPort {
    package static let watcherLimit = 16

    func addWatcher(_ connection: SocketConnection, byteLimit: Int) -> Bool {
        forgetWatchers(besides: connection)
        return state.withLock { state in
            guard let watchers = state.coldState.watchers, !state.mailbox.isDead, watchers.count < Self.watcherLimit
            else { return false }
            state.mailbox.revokeLease()  // from now on watchers get each dequeued message
            state.coldState.watchers?.append(PortWatcher(connection: WeakReference(connection), byteLimit: byteLimit))
            return true
        }
    }

    /// Removes watchers that have gone, and `connection` if it watches already. Reads and releases connections without
    /// the lock.
    private func forgetWatchers(besides connection: SocketConnection? = nil) {
        let watchers = state.withLock { $0.coldState.watchers } ?? []
        let ended = watchers.filter { watcher in
            guard let other = watcher.connection.object else { return true }
            return other === connection || other.isClosed
        }
        if ended.isEmpty { return }
        state.withLock { state in
            state.coldState.watchers?.removeAll { watcher in ended.contains { $0.connection === watcher.connection } }
        }
    }

    /// Sends a copy of a dequeued message to the watchers.
    func show(_ message: MachMessage) {
        let (watchers, number) = state.withLock { state in
            state.coldState.watchedCount += 1
            return (state.coldState.watchers ?? [], state.coldState.watchedCount)
        }
        var hasEndedWatcher = false
        for watcher in watchers {
            guard let connection = watcher.connection.object, !connection.isClosed else {
                hasEndedWatcher = true
                continue
            }
            let shown = WatchedMessage(message, number: number, byteLimit: watcher.byteLimit)
            connection.offerAside(shown.packet)
        }
        if hasEndedWatcher { forgetWatchers() }
    }
}
