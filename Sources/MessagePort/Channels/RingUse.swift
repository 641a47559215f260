// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// When the right's end of a connection offers rings.
enum RingUse: String, Sendable {
    /// With the first message.
    case always
    /// Once there was traffic that is worth them.
    case earned
    case never

    /// What the environment says at the first connection (`PORT_RING`); without a word there, once they are earned.
    static let standard = sysEnvironment("PORT_RING").flatMap(RingUse.init) ?? .earned
}
