// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The requests that wait for replies by way of one object, whose end is theirs.
package final class RequestGroup: Sendable {
    private struct State: Sendable {
        var isClosed = false
        var slots: [ObjectIdentifier: ReplySlot] = [:]
    }

    private let state = Mutex(State())

    /// A group without requests.
    package init() {}

    /// A request begins.
    ///
    /// - Throws: `invalidPort` when the group is closed.
    func begin(_ slot: ReplySlot) throws(PortError) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.slots[ObjectIdentifier(slot)] = slot }
            return state.isClosed
        }
        if isClosed { throw PortError(.invalidPort) }
    }

    /// A request is over.
    func end(_ slot: ReplySlot) {
        let slot = state.withLock { $0.slots.removeValue(forKey: ObjectIdentifier(slot)) }
        withExtendedLifetime(slot) {}
    }

    /// Ends all requests that are under way, as if they had given up, and lets none begin any more.
    package func close(_ error: PortError) {
        let slots = state.withLock { state in
            state.isClosed = true
            return state.slots
        }
        for slot in slots.values { slot.giveUp(error) }
    }
}
