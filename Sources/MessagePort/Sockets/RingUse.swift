// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc

/// When the right's end of a connection offers rings.
enum RingUse: String, Sendable {
    /// With the first message.
    case always
    /// Once there was traffic that is worth them.
    case earned
    case never

    /// What the environment says at the first connection (`PORT_RING`); without a word there, once they are earned.
    static let standard = named("PORT_RING") ?? .earned

    private static func named(_ variable: String) -> RingUse? {
        // SAFETY: the string is copied before anything else is done.
        unsafe getenv(variable).flatMap { unsafe RingUse(rawValue: String(cString: $0)) }
    }
}
