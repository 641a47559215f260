// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What can be added to a mode.
enum RunLoopItem: Sendable {
    case source(RunLoopSource)
    case timer(RunLoopTimer)
    case observer(RunLoopObserver)

    var id: ItemID {
        switch self {
        case .source(let source): source.id
        case .timer(let timer): timer.id
        case .observer(let observer): observer.id
        }
    }

    /// Whether it keeps a run in its mode going.
    var keepsModeAlive: Bool {
        switch self {
        case .source(let source): source.keepsModeAlive
        case .timer: true
        case .observer: false
        }
    }

    /// Drops the item's reference to a loop that ends.
    func forget(_ loop: ThreadRunLoop) {
        switch self {
        case .source(let source): source.state.withLock { $0.membership.remove(loop) }
        case .timer(let timer): timer.state.withLock { $0.membership.remove(loop) }
        case .observer(let observer): observer.membership.withLock { $0.remove(loop) }
        }
    }
}
