// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What the main loop knows about the main dispatch queue.
struct MainQueueState: Sendable {
    let source: ItemID
    /// nil where the system refuses what libdispatch needs: then the source only represents the queue.
    let descriptor: CInt?
    /// The queue is being served.
    var isServed = false
    /// A nested run saw blocks arrive while the queue was being served.
    var isOwed = false
}
