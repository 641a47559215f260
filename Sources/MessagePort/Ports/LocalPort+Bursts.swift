// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

extension LocalPort {
    /// Whether several messages that cannot be answered may be queued at once: not where each may have others dropped.
    var takesBursts: Bool { !readsAhead }

    /// Keeps places in the queue for messages that are about to be taken out of a ring, until `fillReserved`.
    ///
    /// - Returns: how many.
    func reserveRoom(atMost most: Int) -> Int {
        state.withLock { $0.mailbox.reserveRoom(atMost: most) }
    }

    /// Queues messages in the places that were reserved for them, and rings the receivers when they may be asleep. A dead port
    /// leaves them where they are.
    ///
    /// - Parameters:
    ///   - messages: the messages; afterwards there are none.
    ///   - byteCount: how many bytes they have.
    /// - Returns: whether there is room for another.
    func fillReserved(by messages: inout MessageBuffer, byteCount: Int) -> Bool {
        // Set where there is something: what is returned is copied, and that counts references.
        var sources = SourceList()
        var tasks: [WaitingTask] = []
        let hasRoom = state.withLock { state in
            let count = messages.count
            guard let wasEmpty = state.mailbox.fillReserved(by: &messages, byteCount: byteCount) else { return false }
            if wasEmpty, !state.isAttended { sources = state.sources }
            while tasks.count < count, let task = state.nextTask() { tasks.append(task) }
            return state.mailbox.hasRoomForSockets
        }
        sources.ring()
        for task in tasks { task.wake() }
        return hasRoom
    }

    package func didDropTooLarge() {
        look(or: ()) { $0.didDropTooLarge() }
    }
}
