// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// A queue with a port-based source, as a port has it: each item that is put in signals the source.
final class Mailbox: Sendable {
    private let queue: QueueBox
    let source: RunLoopSource

    private final class QueueBox: Sendable {
        let items = Mutex<[Int]>([])
    }

    init(order: Int = 0, _ handler: @escaping @Sendable (Int) -> Void) {
        let queue = QueueBox()
        self.queue = queue
        source = RunLoopSource(
            order: order, readiness: { queue.items.withLock { !$0.isEmpty } },
            perform: {
                let item = queue.items.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                if let item { handler(item) }
            })
    }

    func put(_ item: Int) {
        queue.items.withLock { $0.append(item) }
        source.ring()
    }

    /// Adds an item without signalling the source.
    func putSilently(_ item: Int) {
        queue.items.withLock { $0.append(item) }
    }
}
