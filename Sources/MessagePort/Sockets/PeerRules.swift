// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Which other processes a port talks to, and what each may take up.
final class PeerRules: Sendable {
    static var standard: PeerRules { PeerRules(policy: .sameUser, limits: .standard) }

    let policy: PeerPolicy  // immutable
    let limits: PeerLimits  // immutable

    init(policy: PeerPolicy, limits: PeerLimits) {
        self.policy = policy
        self.limits = limits
    }
}

extension PortCore.State {
    /// How many messages the processes share; nil when the policy makes room for each.
    var sharedQueueLimit: Int? { mailbox.policy == .refuse ? mailbox.limit : nil }
}

extension PortCore {
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
