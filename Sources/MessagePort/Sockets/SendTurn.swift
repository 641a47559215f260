// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The turn to send on a connection: one sender at a time, so that the pieces of large messages never mix; first come,
/// first served; waited for with a deadline, because the holder may itself be waiting for room.
final class SendTurn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [ThreadEvent] = []
    }

    private let state = Mutex(State())

    /// How many senders wait for the turn.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Takes the turn.
    ///
    /// - Returns: false when it did not come before the deadline.
    func take(until deadline: MonotonicInstant) -> Bool {
        let event = state.withLock { state -> ThreadEvent? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let event = ThreadEvent()
            state.waiting.append(event)
            return event
        }
        guard let event, !event.wait(until: deadline) else { return true }
        let wasGiven = state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0 === event }) else { return true }
            state.waiting.remove(at: index)
            return false
        }
        return wasGiven
    }

    /// Passes the turn to the next in line.
    func give() {
        let next = state.withLock { state -> ThreadEvent? in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.set()
    }
}
