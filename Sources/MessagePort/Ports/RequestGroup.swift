// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Requests that end with one object, through which they wait for replies.
package final class RequestGroup: Sendable {
    /// The requests under way; nil when the group is closed.
    let slots = Mutex<SmallTable<ObjectIdentifier, ReplySlot>?>(SmallTable())

    package init() {}

    /// Adds a request.
    ///
    /// - Throws: `invalidPort` when the group is closed.
    func begin(_ slot: ReplySlot) throws(PortError) {
        let isClosed = slots.withLock { slots in
            slots?[ObjectIdentifier(slot)] = slot
            return slots == nil
        }
        if isClosed { throw PortError(.invalidPort) }
    }

    func end(_ slot: ReplySlot) {
        if slot.isInherited { return }
        let slot = slots.withLock { $0?.remove(ObjectIdentifier(slot)) }
        withExtendedLifetime(slot) {}
    }

    /// Abandons all requests under way, and refuses new ones.
    package func close(_ error: PortError) {
        guard let slots = slots.withLock({ $0.take() }) else { return }
        for slot in slots.values { slot.giveUp(error) }
    }
}
