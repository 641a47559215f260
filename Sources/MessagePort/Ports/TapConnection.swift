// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Other processes may tap a port whose owner allows it. A copy of each message is offered to the kernel once,
// when it is dequeued: where there is no room it is left out, so a slow tap delays no sender.

/// A connection over which a process gets copies of a port's messages.
struct TapConnection: Sendable {
    let connection: WeakReference<SocketConnection>
    /// How many bytes of each message it gets.
    let byteLimit: Int
}

extension LocalPort {
    package static let tapLimit = 16

    func addTap(_ connection: SocketConnection, byteLimit: Int) -> Bool {
        forgetTaps(besides: connection)
        return state.withLock { state in
            guard let taps = state.coldState.taps, !state.mailbox.isDead, taps.count < Self.tapLimit
            else { return false }
            state.mailbox.revokeLease()  // from now on taps get each dequeued message
            state.coldState.taps?.append(TapConnection(connection: WeakReference(connection), byteLimit: byteLimit))
            return true
        }
    }

    /// Removes taps that have gone, and `connection` if it is a tap already. Reads and releases connections without
    /// the lock.
    private func forgetTaps(besides connection: SocketConnection? = nil) {
        let taps = state.withLock { $0.coldState.taps } ?? []
        let ended = taps.filter { tap in
            guard let other = tap.connection.object else { return true }
            return other === connection || other.isClosed
        }
        if ended.isEmpty { return }
        state.withLock { state in
            state.coldState.taps?.removeAll { tap in ended.contains { $0.connection === tap.connection } }
        }
    }

    /// Sends a copy of a dequeued message to the taps.
    func show(_ message: MachMessage) {
        let (taps, number) = state.withLock { state in
            state.coldState.tappedCount += 1
            return (state.coldState.taps ?? [], state.coldState.tappedCount)
        }
        var hasEndedTap = false
        for tap in taps {
            guard let connection = tap.connection.object, !connection.isClosed else {
                hasEndedTap = true
                continue
            }
            let shown = TappedMessage(message, number: number, byteLimit: tap.byteLimit)
            connection.offerAside(shown.packet)
        }
        if hasEndedTap { forgetTaps() }
    }
}
