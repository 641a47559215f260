// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What the main loop knows about the main dispatch queue.
struct MainQueueState: Sendable {
    let source: ItemID
    /// nil where the system refuses libdispatch what it needs: then the source only stands for the queue.
    let descriptor: CInt?
    /// A service is under way.
    var isServed = false
    /// Blocks came during it that a nested run saw.
    var isOwed = false
}
