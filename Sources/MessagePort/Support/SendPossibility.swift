// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Why a sender that waits for room at a port is notified. `MACH_NOTIFY_SEND_POSSIBLE`, `MACH_NOTIFY_DEAD_NAME`.
public enum SendPossibility: Hashable, Sendable {
    /// There was room at the time of the notice. Other senders may be quicker; then ask again.
    case possible
    /// The port is gone: there will never be room.
    case deadName
}
