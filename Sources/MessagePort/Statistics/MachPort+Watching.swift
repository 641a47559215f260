// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

//
// Others may look at the messages of a port whose owner agrees. What they are shown is offered to the kernel once, when
// the message is taken: where there is no room it is left out, so a slow watcher keeps nobody waiting.

import PortSystem
import Synchronization

/// A connection over which somebody watches a port's messages.
struct PortWatcher: Sendable {
    let number: UInt64
    let connection: Weak<SocketConnection>
    /// How many bytes of each message are shown.
    let byteLimit: Int
}

extension MachPort {
    /// Whether other processes of the same user may watch this port's messages; at first they may not.
    public var allowsWatching: Bool {
        core.isInherited ? false : core.state.withLock { $0.extras.allowsWatching }
    }

    /// Sets whether other processes of the same user may watch this port's messages, for example with `portctl watch`.
    ///
    /// A watcher sees the head of each message as it is taken from the queue, its sender, and the beginning of its
    /// bytes, but no descriptors and rights, and no replies. What finds no room on its way to a watcher is left out and
    /// counted. While somebody watches, each message costs a system call for each watcher.
    ///
    /// - Parameter allows: false ends the watches that there are.
    public func setAllowsWatching(_ allows: Bool) {
        if core.isInherited { return }
        let ended = core.state.withLock { state -> [PortWatcher] in
            if state.extras.allowsWatching == allows { return [] }
            state.extras.allowsWatching = allows
            if allows { return [] }
            defer { state.extras.watchers = [] }
            return state.extras.watchers
        }
        for watcher in ended { watcher.connection.object?.answerWatch(false) }
    }
}

extension PortCore {
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
                number: state.extras.lastWatcher, connection: Weak(object: connection), byteLimit: byteLimit)
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

extension SocketConnection {
    /// The peer wants to watch the port.
    func beginWatch(of core: PortCore, byteLimit: Int) {
        noteLookingOn(core)
        // A policy may admit other users; their eyes are not meant by it.
        answerWatch(sysIsOwnUser(peer.userID) && core.addWatcher(self, byteLimit: byteLimit))
    }

    /// Says whether the peer is shown messages. Never waits.
    func answerWatch(_ isAllowed: Bool) {
        let header = PacketHeader(kind: .watch, componentCount: isAllowed ? 1 : 2)
        owe([OverduePacket(packet: OutgoingPacket(header: header))])
    }

    /// Sends a packet if there is room now and nothing else is on its way; otherwise it is left out.
    func offerAside(_ packet: OutgoingPacket) {
        guard turn.takeIfFree() else { return }
        if overdue.withLock({ $0.isEmpty }) { _ = try? offer(packet) }
        turn.give()
        sendOverdue()
    }
}
