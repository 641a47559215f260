// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension LocalPort.State {
    /// How many messages the processes share; nil when the policy makes room for each.
    var sharedQueueLimit: Int? { mailbox.policy == .refuse ? mailbox.limit : nil }
}

extension LocalPort {
    /// The queue has another limit: the processes share that from now on.
    func shareQueue() {
        let sockets = state.withLock { state in
            let queueLimit = state.sharedQueueLimit
            state.extras.sockets?.accounts.withLock { $0.queueLimit = queueLimit }
            return state.extras.sockets
        }
        sockets?.resume()
    }

    var peerRules: PeerRules { state.withLock { $0.extras.rules } ?? .standard }

    /// Has other rules hold from now on. A port that has ended has none.
    func changePeerRules(_ body: (PeerRules) -> PeerRules) {
        if isInherited { return }
        let sockets = state.withLock { state -> PortSockets? in
            if state.mailbox.isDead { return nil }
            let rules = body(state.extras.rules ?? .standard)
            state.extras.rules = rules
            state.extras.sockets?.accounts.withLock { $0.limits = rules.limits }
            return state.extras.sockets
        }
        sockets?.resume()
    }
}
