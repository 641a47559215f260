// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What the main loop knows about the main dispatch queue.
struct MainQueueState: Sendable {
    enum Service: Sendable {
        case idle, underWay
        /// Under way, and a nested run has seen more blocks arrive.
        case blocksLeft
    }

    let source: ItemID
    /// nil where the system refuses what libdispatch needs: then the source only represents the queue.
    let descriptor: CInt?
    var service = Service.idle
}

extension RunLoopState {
    /// Removes the main queue from the ready list.
    ///
    /// - Returns: its descriptor, which the caller reads, and whether its blocks may run now.
    mutating func beginMainQueue(in mode: Int) -> (descriptor: CInt, mayServe: Bool)? {
        guard let queue = mainQueue, let descriptor = queue.descriptor else { return nil }
        if let number = registrations.registration(of: queue.source, in: mode) {
            _ = modes[mode].ready.dequeueForPerform(number, &registrations)
        }
        mainQueue?.service = queue.service == .idle ? .underWay : .blocksLeft
        return (descriptor, queue.service == .idle)
    }

    /// - Returns: whether blocks have arrived that were not run.
    mutating func endMainQueue() -> Bool {
        defer { mainQueue?.service = .idle }
        return mainQueue?.service == .blocksLeft
    }
}
