// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension MachPort {
    /// How many messages wait in the queue.
    public var queueCount: Int { core.look(or: 0) { $0.queue.count } }

    /// How many messages may wait in the queue. `mach_port_limits`.
    public var queueLimit: Int { core.look(or: 0) { $0.limit } }

    /// What happens to a message for which the queue has no room.
    public var queuePolicy: QueuePolicy { core.look(or: .refuse) { $0.policy } }

    /// Changes how many messages may wait in the queue. `mach_port_set_attributes` with `MACH_PORT_LIMITS_INFO`.
    ///
    /// A lower limit drops nothing: what waits stays, and new messages find room once the queue is shorter. A higher
    /// one admits waiting senders, in the order in which they came, before this returns.
    ///
    /// - Parameter limit: how many messages, from 1 to ``maximumQueueLimit``; others trap.
    public func setQueueLimit(_ limit: Int) {
        Self.checkQueueLimit(limit)
        if core.isInherited { return }
        core.change { $0.setLimit(limit) }
        core.shareQueue()
    }

    /// The most messages that have waited in the queue at once, since the port was made or the mark was reset.
    public var queueHighWaterMark: Int { core.look(or: 0) { $0.highWater } }

    /// Sets the high-water mark to the number of messages that wait now.
    ///
    /// - Returns: the mark as it was.
    @discardableResult
    public func resetQueueHighWaterMark() -> Int {
        core.look(or: 0) { $0.resetHighWater() }
    }

    /// How many messages were dropped since the port was made: by the queue's policy, or unread because they were
    /// larger than ``PeerLimits/messageBytes`` and asked for no reply. What the policy drops bounces: its requester
    /// gets ``PortError/Code/messageDropped``, and its descriptors are closed.
    public var droppedMessageCount: Int { core.look(or: 0) { $0.droppedCount } }

    static func checkQueueLimit(_ limit: Int) {
        if !(1...maximumQueueLimit).contains(limit) {
            fatalError("A queue limit of \(limit) is not possible; choose 1 to \(maximumQueueLimit) messages.")
        }
    }
}
