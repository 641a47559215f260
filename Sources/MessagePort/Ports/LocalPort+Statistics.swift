// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension LocalPort {
    /// What the port has counted; of a parent's port nothing.
    var statistics: PortStatistics {
        var statistics = PortStatistics()
        if isInherited { return statistics }
        state.withLock { state in
            statistics.messageCount = state.mailbox.messageCount
            statistics.byteCount = state.mailbox.byteCount
            statistics.droppedMessageCount = state.mailbox.droppedCount
            statistics.queueCount = state.mailbox.queue.count
            statistics.queueLimit = state.mailbox.limit
            statistics.queueHighWaterMark = state.mailbox.highWater
            statistics.clientCount = max(0, Int(state.senders.clientCount))
        }
        return statistics
    }
}
