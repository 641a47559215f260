// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Which other processes a port talks to, and what each may use.
final class PeerRules: Sendable {
    static var standard: PeerRules { PeerRules(policy: .sameUser, limits: .standard) }

    let policy: PeerPolicy  // immutable
    let limits: PeerLimits  // immutable

    init(policy: PeerPolicy, limits: PeerLimits) {
        self.policy = policy
        self.limits = limits
    }
}
