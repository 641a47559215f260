// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension MachPort {
    /// Sets which other processes the port talks to; initially ``PeerPolicy/sameUser``.
    ///
    /// It holds for connections that are accepted from now on, so set it before the port is named or a right to it is
    /// sent.
    ///
    /// - Parameter policy: asked once for each connection, before anything is read from it.
    public func setPeerPolicy(_ policy: PeerPolicy) {
        core.changePeerRules { PeerRules(policy: policy, limits: $0.limits) }
    }

    /// Sets what one other process may use at the port; initially ``PeerLimits/standard``.
    ///
    /// It holds for what is received from now on. A lower limit closes and drops nothing.
    ///
    /// - Parameter limits: each at least 1, and ``PeerLimits/messageBytes`` at most ``MessageLimits/payload``; others
    ///   trap.
    public func setPeerLimits(_ limits: PeerLimits) {
        if !limits.isPossible {
            fatalError(
                "These peer limits are not possible: \(limits); choose each at least 1, "
                    + "and messageBytes at most \(MessageLimits.payload).")
        }
        core.changePeerRules { PeerRules(policy: $0.policy, limits: limits) }
    }
}
